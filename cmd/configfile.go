package cmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mqttload/mqttload/internal/bench"
	"github.com/mqttload/mqttload/internal/file"
	"github.com/mqttload/mqttload/internal/strictyaml"
	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/scenarios"
)

// configFile is a configuration file while it is being read.
type configFile struct {
	path  string
	specs map[string]flagSpec // of this command, by key
	got   map[string]setting  // by flag name
	found []strictyaml.Fault
	bad   *bench.Faults
}

// readConfig reads a flat YAML map of long flag names, as strictly as a scenario
// file is read. viper would turn a user named 0123 into a number.
func readConfig(path string, specs map[string]flagSpec, bad *bench.Faults) map[string]setting {
	if path == "" {
		return nil
	}
	b, err := file.Read(path, strictyaml.MaxSize)
	if err != nil {
		bad.Usage("", "--config %s: %v", path, err)
		return nil
	}
	f := &configFile{path: path, specs: specs, got: map[string]setting{}, bad: bad}
	root, faults := strictyaml.Parse(b)
	f.found = faults
	switch {
	case root == nil:
	case root.Kind != strictyaml.Mapping:
		f.fail(root.Line, "write lines like \"qos: 1\"", "the file must be a map of flag names")
	default:
		for _, p := range root.Pairs {
			f.key(p)
		}
	}
	f.report()
	return f.got
}

func (f *configFile) fail(line int, hint, format string, args ...any) {
	f.fault(strictyaml.Fault{Line: line, Cause: fmt.Sprintf(format, args...), Remedy: hint})
}

func (f *configFile) fault(one strictyaml.Fault) { f.found = append(f.found, one) }

// report adds what was found to the faults of the command line, in the order of
// the file's lines.
func (f *configFile) report() {
	slices.SortStableFunc(f.found, func(a, b strictyaml.Fault) int { return a.Line - b.Line })
	for _, one := range f.found {
		place := f.path
		if one.Line > 0 {
			place = fmt.Sprintf("%s:%d", f.path, one.Line)
		}
		f.bad.Usage(one.Remedy, "%s: %s", place, one.Cause)
	}
}

// key takes one key with its value.
func (f *configFile) key(p strictyaml.Pair) {
	switch spec, own := f.specs[p.Key]; {
	case everyKey()[p.Key].name == "":
		f.unknown(p)
	case p.Key == "config":
		f.fail(p.Line, "", "config: a configuration cannot name another one")
	case own:
		f.set(spec, p)
	default:
		f.values(everyKey()[p.Key], p) // the key of another command is checked as well
	}
}

func (f *configFile) unknown(p strictyaml.Pair) {
	switch near := text.Nearest(p.Name, names(everyKey())); {
	case near != "":
		f.fail(p.Line, "", "unknown key %q, did you mean %q?", p.Name, near)
	case p.Value.Absent():
		// {password: s3,cret} has a part of the value as its second key.
		f.fail(p.Line, "quote a value that holds a comma", "found a word without a value instead of a key")
	default:
		f.fail(p.Line, "keys are the long names of flags; a scenario file is given as run's argument", "unknown key %q", p.Name)
	}
}

// set keeps the value of a key that this command has.
func (f *configFile) set(spec flagSpec, p strictyaml.Pair) {
	values, ok := f.values(spec, p)
	if !ok {
		return
	}
	if spec.kind != list {
		values = []string{strings.Join(values, ",")}
	}
	s := setting{flagSpec: spec, values: values, source: fromConfig, place: fmt.Sprintf("%s:%d: %s", f.path, p.Line, p.Key)}
	checkToggle(s, f.bad)
	f.got[spec.name] = s
}

// values returns the texts of a scalar or, where the key takes several, of a list.
func (f *configFile) values(spec flagSpec, p strictyaml.Pair) (values []string, ok bool) {
	axis := slices.Contains(scenarios.AxisKeys(), strings.ReplaceAll(p.Key, "-", "_"))
	if spec.kind != list && !axis {
		one, ok := p.Value.Scalar(f.fault)
		return []string{one}, ok
	}
	nodes, ok := p.Value.Scalars(f.fault)
	for _, n := range nodes {
		values = append(values, n.Text)
	}
	if ok && len(values) == 0 {
		f.fail(p.Line, "list one, or remove the key", "%s has no values", p.Key)
	}
	return values, ok && len(values) > 0
}
