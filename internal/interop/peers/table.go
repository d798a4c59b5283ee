package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
)

// render writes all figures, an overview and the goals as Markdown.
func render(out io.Writer, r *runner, rows []row) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s; %d rounds, median (min-max).\n\n", machine(), r.rounds)
	b.WriteString("| work | client | CPU ns | writes | per second | KiB | against mqttload |\n|---|---|---:|---:|---:|---:|---:|\n")
	for i := range rows {
		b.WriteString(line(&rows[i], reference(rows, rows[i].Work)))
	}
	b.WriteString("\nCPU, writes and memory are per message, or per connection of work=connect.\n\n")
	b.WriteString(overview(rows))
	b.WriteString("\n| work | goal | must | aim | seen | verdict |\n|---|---|---:|---:|---:|---|\n")
	works := append(allWorks(r.connections), toolWork)
	for i := range works {
		for _, g := range works[i].goals {
			if v, ok := judge(&works[i], g, rows); ok {
				fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", works[i].id, v.text, v.must, v.aim, v.seen, v.verdict)
			}
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// overview has a line per work and a column per client: CPU time, and how many
// times that of mqttload it is.
func overview(rows []row) string {
	var works, clients []string
	cells := make(map[[2]string]string)
	for i := range rows {
		x := &rows[i]
		if !slices.Contains(works, x.Work) {
			works = append(works, x.Work)
		}
		if !slices.Contains(clients, x.Client) {
			clients = append(clients, x.Client)
		}
		cell := number(spreadOf(x, cpuOf).median) + " ns"
		if ours := reference(rows, x.Work); x.Failed != "" {
			cell = "FAILED"
		} else if ours != nil && ours != x && ours.Failed == "" {
			cell += fmt.Sprintf(" (%sx)", number(spreadOf(x, cpuOf).median/spreadOf(ours, cpuOf).median))
		}
		cells[[2]string{x.Work, x.Client}] = cell
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| CPU per message or connection | %s |\n|---|%s\n", strings.Join(clients, " | "), strings.Repeat("---:|", len(clients)))
	for _, w := range works {
		fmt.Fprintf(&b, "| %s |", w)
		for _, c := range clients {
			fmt.Fprintf(&b, " %s |", cells[[2]string{w, c}])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// machine describes the machine of the run.
func machine() string {
	cpu := "unknown CPU"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if _, rest, ok := strings.Cut(string(text), "model name"); ok {
			name, _, _ := strings.Cut(rest, "\n")
			cpu = strings.TrimSpace(strings.TrimLeft(name, "\t :"))
		}
	}
	where := "not pinned"
	if pinning != "" {
		where = "other end on core 0, clients on core 1"
	}
	return fmt.Sprintf("%s, %d cores, %s %s, %s; %s", cpu, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), where)
}

// reference returns the row of mqttload with which the others of a work are
// compared.
func reference(rows []row, work string) *row {
	for i := range rows {
		if rows[i].Work == work && (rows[i].Client == ourClient || rows[i].Client == toolWork.goals[0].ours) {
			return &rows[i]
		}
	}
	return nil
}

func line(x, ours *row) string {
	name := x.Client
	if x.Version != "" && x.Version != "-" {
		name += " " + x.Version
	}
	if x.Failed != "" {
		return fmt.Sprintf("| %s | %s | FAILED: %s | | | | |\n", x.Work, name, strings.ReplaceAll(x.Failed, "|", "\\|"))
	}
	cpu := spreadOf(x, cpuOf)
	cells := []string{
		x.Work, name, fmt.Sprintf("%s (%s-%s)", number(cpu.median), number(cpu.min), number(cpu.max)),
		"", number(spreadOf(x, func(s sample) float64 { return s.UnitsPerSec }).median), "", "",
	}
	if w := spreadOf(x, func(s sample) float64 { return s.Writes }).median; w > 0 {
		cells[3] = fmt.Sprintf("%.4f", w)
	}
	if m := spreadOf(x, rssOf).median; m > 0 {
		cells[5] = fmt.Sprintf("%.1f", m/1024)
	}
	if ours != nil && len(ours.Samples) > 0 && ours.Failed == "" {
		cells[6] = number(cpu.median/spreadOf(ours, cpuOf).median) + "x"
	}
	return "| " + strings.Join(cells, " | ") + " |\n"
}

func rssOf(s sample) float64 { return s.RSSBytes }

// number writes a figure with three digits, or whole with separators.
func number(v float64) string {
	if v < 99.95 {
		return fmt.Sprintf("%.3g", v)
	}
	digits := fmt.Sprintf("%.0f", v)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// verdict is a goal and its result.
type verdict struct{ text, must, aim, seen, verdict string }

// judge returns false if the work was left out.
func judge(w *work, g goal, rows []row) (v verdict, ok bool) {
	var ours, best *row
	for i := range rows {
		x := &rows[i]
		if x.Work != w.id {
			continue
		}
		ok = true
		switch {
		case x.Failed != "" || len(x.Samples) == 0:
		case x.Client == g.ours:
			ours = x
		case g.isPeer(x.Client) && (best == nil || spreadOf(x, cpuOf).median < spreadOf(best, cpuOf).median):
			best = x
		}
	}
	if g.rss > 0 {
		return g.judgeMemory(ours), ok
	}
	v = verdict{text: fmt.Sprintf("CPU of %s less than that of the best peer", g.ours), must: fmt.Sprintf("%gx", g.must), aim: fmt.Sprintf("%gx", g.aim)}
	if ours == nil || best == nil {
		v.verdict = "not measured"
		return v, ok
	}
	v.text = fmt.Sprintf("CPU of %s less than that of %s", g.ours, best.Client)
	ratio := spreadOf(best, cpuOf).median / spreadOf(ours, cpuOf).median
	v.seen = number(ratio) + "x"
	switch {
	case ratio >= g.aim:
		v.verdict = "holds, aim too"
	case ratio >= g.must:
		v.verdict = "holds"
	default:
		v.verdict = "MISSED"
	}
	return v, ok
}

func (g goal) judgeMemory(ours *row) verdict {
	v := verdict{text: "memory per idle connection", must: fmt.Sprintf("%g KiB", g.rss), verdict: "not measured"}
	if ours == nil {
		return v
	}
	kib := spreadOf(ours, rssOf).median / 1024
	v.seen, v.verdict = fmt.Sprintf("%.1f KiB", kib), "MISSED"
	if kib <= g.rss {
		v.verdict = "holds"
	}
	return v
}

// isPeer reports whether mqttload is compared with this client.
func (g goal) isPeer(client string) bool {
	if g.peers == nil {
		return client != ourClient && client != engine && client != rawBytes && client != toolWork.goals[0].ours
	}
	return slices.Contains(g.peers, client)
}

// writeJSON writes every sample to a file.
func writeJSON(file string, r *runner, rows []row) error {
	b, err := json.MarshalIndent(struct {
		Machine string `json:"machine"`
		Rounds  int    `json:"rounds"`
		Rows    []row  `json:"rows"`
	}{machine(), r.rounds, rows}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(b, '\n'), 0o644)
}
