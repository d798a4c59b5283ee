package result

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// UnlikeKeys are the differences between runs that Compare refuses, by the key
// that allows each.
var UnlikeKeys = []string{
	"cpu", "cores", "os", "arch", "gomaxprocs", "target", "tls_version", "tls_cipher", "tls_verification",
	"window", "operations", "scenario", "tool",
}

// Difference is one condition that differs between two runs.
type Difference struct {
	Key  string `json:"key"` // of UnlikeKeys
	Base string `json:"base"`
	Head string `json:"head"`
}

// String is the key and both values: "cores: 2, 8".
func (d Difference) String() string { return fmt.Sprintf("%s: %s, %s", d.Key, d.Base, d.Head) }

// UnlikeError names every condition in which the runs differ and that was not allowed.
type UnlikeError struct{ Differences []Difference }

// Error lists the differences and the keys that allow them.
func (e *UnlikeError) Error() string {
	var all, keys []string
	for _, d := range e.Differences {
		all = append(all, d.String())
		if !slices.Contains(keys, d.Key) {
			keys = append(keys, d.Key)
		}
	}
	return fmt.Sprintf("compare: the runs differ (%s): compare runs made under the same conditions, or allow %s",
		strings.Join(all, "; "), strings.Join(keys, ", "))
}

// alike compares the first file with every other, and matched cells with each other. It
// refuses differences, or records them if they are allowed.
func (c *comparer) alike(base, head []*Input, pairs []pair) error {
	var all []Difference
	files := slices.Concat(base, head)
	for _, in := range files[1:] {
		for _, d := range differences(files[0], in) {
			if !slices.Contains(all, d) {
				all = append(all, d)
			}
		}
	}
	all = append(all, c.cellDifferences(pairs)...)
	var refused []Difference
	for _, d := range all {
		if slices.Contains(c.o.Allow, d.Key) {
			c.out.Allowed = append(c.out.Allowed, d)
		} else {
			refused = append(refused, d)
		}
	}
	if len(refused) > 0 {
		return &UnlikeError{refused}
	}
	return nil
}

// differences compares the conditions that both files state.
func differences(a, b *Input) []Difference {
	var ds []Difference
	add := func(key, x, y string) {
		if x != "" && y != "" && x != y {
			ds = append(ds, Difference{key, x, y})
		}
	}
	ea, eb := a.Environment, b.Environment
	add("cpu", cpuName(ea.CPU), cpuName(eb.CPU))
	add("cores", known(ea.Cores), known(eb.Cores))
	add("os", osName(ea.OS), osName(eb.OS))
	add("arch", archName(ea.Arch), archName(eb.Arch))
	add("gomaxprocs", known(ea.GOMAXPROCS), known(eb.GOMAXPROCS))
	if a.Target != nil && b.Target != nil {
		add("target", a.Target.kind(), b.Target.kind())
		add("tls_version", a.Target.tls().Version, b.Target.tls().Version)
		if a.Target.TLS != nil && b.Target.TLS != nil {
			add("tls_cipher", a.Target.TLS.Cipher, b.Target.TLS.Cipher)
			add("tls_verification", verification(a.Target.TLS), verification(b.Target.TLS))
		}
	}
	if a.Report != nil && b.Report != nil && a.Report.ScenarioHash != b.Report.ScenarioHash {
		x, y := scenarioDifference(a.Report, b.Report)
		add("scenario", x, y)
	}
	add("tool", toolMajor(a), toolMajor(b))
	return ds
}

func known(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// kind names a target: embedded brokers differ only in their port.
func (t *Target) kind() string {
	if t.Embedded {
		return "embedded broker"
	}
	return t.URL
}

func (t *Target) tls() TLS {
	if t.TLS == nil {
		return TLS{Version: "no TLS"}
	}
	return *t.TLS
}

func verification(t *TLS) string {
	if t.Insecure {
		return "not verified"
	}
	return "verified"
}

var cpuNoise = regexp.MustCompile(`\((R|TM|r|tm)\)|\s+`)

func cpuName(s string) string {
	return strings.TrimSpace(strings.ReplaceAll(cpuNoise.ReplaceAllString(s, " "), "  ", " "))
}

// osName is the family: other tools print a version after it.
func osName(s string) string {
	first, _, _ := strings.Cut(strings.ToLower(s), " ")
	return strings.Trim(first, ",")
}

func archName(s string) string {
	switch strings.ToLower(s) {
	case "x64", "x86_64", "amd64":
		return "amd64"
	case "aarch64", "arm64":
		return "arm64"
	}
	return strings.ToLower(s)
}

var major = regexp.MustCompile(`^v?(\d+)\.`)

// toolMajor is name and major version, "" if either is unknown, as in a build from a checkout.
func toolMajor(in *Input) string {
	m := major.FindStringSubmatch(in.ToolVersion)
	if m == nil {
		return ""
	}
	return in.ToolName + " " + m[1]
}

// cellDifferences compares the conditions that are known per cell, and returns the first
// pair that differs in each.
func (c *comparer) cellDifferences(pairs []pair) []Difference {
	var ds []Difference
	for _, k := range []struct {
		key string
		of  func(*side) []int
	}{
		{"window", func(s *side) []int { return s.windows }},
		{"operations", func(s *side) []int { return s.perOp }},
	} {
		for _, p := range pairs {
			x, y := knownInts(k.of(p.base)), knownInts(k.of(p.head))
			if x == "" || y == "" || x == y || c.acrossKey == "inflight" && k.key == "window" {
				continue
			}
			ds = append(ds, Difference{k.key, x, y + " (" + p.base.id + ")"})
			break
		}
	}
	return ds
}

func knownInts(ns []int) string {
	ns = slices.DeleteFunc(slices.Sorted(slices.Values(ns)), func(n int) bool { return n == 0 })
	var parts []string
	for _, n := range slices.Compact(ns) {
		parts = append(parts, strconv.Itoa(n))
	}
	return strings.Join(parts, " and ")
}

// scenarioListed is how many differing keys of two scenarios are named.
const scenarioListed = 5

// unhashedKeys are the sections that a scenario hash leaves out.
var unhashedKeys = []string{"name", "description", "target", "gates"}

// scenarioDifference prints the settings in which two scenarios differ.
func scenarioDifference(a, b *Report) (string, string) {
	x, y := leaves(a.Scenario), leaves(b.Scenario)
	both := maps.Clone(x)
	maps.Copy(both, y)
	var left, right []string
	for _, key := range sortedKeys(both) {
		section, _, _ := strings.Cut(key, ".")
		if x[key] == y[key] || slices.Contains(unhashedKeys, section) {
			continue
		}
		if len(left) == scenarioListed {
			left, right = append(left, "..."), append(right, "...")
			break
		}
		left, right = append(left, key+"="+absent(x[key])), append(right, key+"="+absent(y[key]))
	}
	if len(left) == 0 && short(a.ScenarioHash) == short(b.ScenarioHash) {
		return "hash " + absent(a.ScenarioHash), "hash " + absent(b.ScenarioHash)
	}
	if len(left) == 0 {
		return "hash " + short(a.ScenarioHash), "hash " + short(b.ScenarioHash)
	}
	return strings.Join(left, " "), strings.Join(right, " ")
}

func absent(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func short(hash string) string {
	if hash == "" {
		return "unknown"
	}
	return hash[:min(len(hash), 12)]
}

// leaves flattens a scenario to "load.inflight" and its JSON text.
func leaves(scenario any) map[string]string {
	out := map[string]string{}
	b, err := json.Marshal(scenario)
	var doc map[string]any
	if err != nil || json.Unmarshal(b, &doc) != nil {
		return out // no scenario in the report: the hashes are shown
	}
	flatten(out, "", doc)
	return out
}

func flatten(out map[string]string, prefix string, v any) {
	if m, ok := v.(map[string]any); ok {
		for k, inner := range m {
			flatten(out, strings.TrimPrefix(prefix+"."+k, "."), inner)
		}
		return
	}
	if b, err := json.Marshal(v); err == nil {
		out[prefix] = string(b)
	}
}
