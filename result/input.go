package result

import (
	"slices"
	"strings"
	"time"
)

// Formats that ReadAny reads.
const (
	FormatReport   = "mqttload JSON"
	FormatTSV      = "tab-separated table"
	FormatMarkdown = "markdown table"
	FormatBDN      = "BenchmarkDotNet JSON"
	FormatGoBench  = "Go benchmark text"
)

// Input is the content of one file of any format, as Compare and Audit read it. Fields
// that the format does not have are zero.
type Input struct {
	Source  string // the file's name
	Format  string
	Digest  string // SHA-256 of the unpacked file, hexadecimal
	Report  *Report
	RunID   string
	Started time.Time
	Status  string

	ToolName    string // "mqttload", "BenchmarkDotNet"
	ToolVersion string
	Environment Environment
	Target      *Target

	// StatedN is how many iterations, over all launches, the header says that
	// each row is made of.
	StatedN int
	// VariableN is set if rows of one run may rest on different numbers of iterations, as
	// in BenchmarkDotNet's default job: it repeats until the error is small, and removes
	// outliers.
	VariableN bool
	// OperationsPerIteration turns times per operation of a table into times of
	// an iteration; a caller that knows it may set it.
	OperationsPerIteration int64
	// Columns are the columns of a printed table, in their order.
	Columns []PrintedColumn
	Cells   []Cell

	common []Param // Key=Value of the lines before the table
}

// Cell is one case of an Input: samples, or only a summary of them.
type Cell struct {
	ID       string // as the file writes its parameters
	Params   []Param
	Samples  []float64 // ns per operation of every actual iteration, in the order they ran
	Launches []int     // launch of each sample, or nil
	// Summary is computed from the samples, or taken from the file if it has none. A
	// table prints no N: it follows from Error and StdDev.
	Summary Summary
	// Stated is the summary that the file has in addition to samples, or nil.
	Stated *Summary
	// IterationNS is the mean time of an iteration, or nil.
	IterationNS *float64
	Latency     Latency
	Delivery    *Delivery // nil if the file has no account
	Clients     *Clients
	QoS         *byte    // of the messages, nil if unknown
	Broken      []Breach // of the delivery contract: see [Case.Broken]
	// Window and OperationsPerMessage are 0 if unknown.
	Window               int
	OperationsPerMessage int
	// Generator says how the load generator was the limit, "" if it was not.
	Generator string
	// Stalled is the warning of Analyze about a stalled iteration, or nil.
	Stalled *Warning
	// Printed holds the table's fields by column, rounded as they were printed.
	Printed map[string]Printed
}

// measured reports whether c has a number to compare.
func (c *Cell) measured() bool { return len(c.Samples) > 0 || c.Summary.MeanNS != nil }

// InputOf returns the cells of a report of this program. Source is what
// messages call it.
func InputOf(source string, r *Report) *Input {
	in := &Input{
		Source: source, Format: FormatReport, Report: r,
		RunID: r.Run.ID, Started: r.Run.Started, Status: r.Run.Status,
		ToolName: "mqttload", ToolVersion: r.Tool.Version, Environment: r.Environment, Target: &r.Target,
	}
	for i := range r.Cases {
		cell := cellOf(&r.Cases[i])
		cell.Generator = generatorOf(r, &r.Cases[i])
		in.Cells = append(in.Cells, cell)
	}
	return in
}

// cellOf computes the summary from the iterations only: a cell without a usable actual
// iteration is not measured, whatever summary the report states.
func cellOf(c *Case) Cell {
	cell := Cell{
		ID: c.ID, Params: c.Params, Latency: c.Latency,
		Delivery: accountOf(c), Clients: &c.Clients, QoS: c.QoS, Broken: c.Broken(),
		Window: c.Window, OperationsPerMessage: c.OperationsPerMessage,
	}
	stated := c.Summary
	cell.Stated = &stated
	total := 0.0
	for _, it := range actual(c.Iterations) {
		if it.Operations > 0 && it.ElapsedNS > 0 {
			cell.Samples = append(cell.Samples, float64(it.ElapsedNS)/float64(it.Operations))
			cell.Launches = append(cell.Launches, it.Launch)
			total += float64(it.ElapsedNS)
		}
	}
	if n := len(cell.Samples); n > 0 {
		mean := total / float64(n)
		cell.IterationNS, cell.Summary = &mean, Summarize(c.Iterations, c.OperationsPerMessage)
		ws := stalled(*c, slices.Sorted(slices.Values(cell.Samples)))
		if len(ws) > 0 {
			cell.Stalled = &ws[0]
		}
	}
	return cell
}

// accountOf is the delivery account of c, nil if the report has none. An account of
// zeros is none: every measured case counts something.
func accountOf(c *Case) *Delivery {
	if c.Delivery == (Delivery{CountsOnly: c.Delivery.CountsOnly}) {
		return nil
	}
	return &c.Delivery
}

// paramNames are names of other tools for the parameters of this one.
var paramNames = map[string]string{"qoslevel": "qos", "payloadsizebytes": "payload", "protocolversion": "protocol"}

var qosNames = map[string]string{"atmostonce": "0", "atleastonce": "1", "exactlyonce": "2"}

// canonicalParam is p under the name and value that this program would give it,
// so that a table of TurboMqtt joins with a report of the same cells.
func canonicalParam(p Param) Param {
	key := strings.ToLower(p.Key)
	if name, ok := paramNames[key]; ok {
		key = name
	}
	value := p.Value
	switch key {
	case "qos":
		if q, ok := qosNames[strings.ToLower(value)]; ok {
			value = q
		}
	case "protocol":
		if v, ok := strings.CutPrefix(strings.ToUpper(value), "V"); ok {
			value = strings.TrimSuffix(strings.ReplaceAll(v, "_", "."), ".0")
		}
	}
	return Param{Key: key, Value: value}
}

// joinKey is equal for matching cells of two files: the canonical parameters in the
// order of their names, without the ignored ones.
func joinKey(params []Param, ignore func(Param) bool) string {
	var key []Param
	for _, p := range params {
		if c := canonicalParam(p); !ignore(p) && !ignore(c) {
			key = append(key, c)
		}
	}
	slices.SortFunc(key, func(a, b Param) int { return strings.Compare(a.Key, b.Key) })
	return CaseID(key)
}
