package cmd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"
)

const (
	envPrefix     = "MQTTLOAD_"
	defaultConfig = "mqttload.yaml"
	maxConfigSize = 1 << 20
)

// Where a setting comes from, the stronger the higher.
const (
	fromConfig = iota + 1
	fromEnv
	fromFlag
)

// setting is the value of one flag, wherever it was given.
type setting struct {
	flagSpec
	values []string // one, but for lists
	source int
	place  string // "--qos", "MQTTLOAD_QOS", "mqttload.yaml:3: qos"
}

func (s setting) value() string { return strings.Join(s.values, ",") }
func (s setting) on() bool      { return s.value() == "true" }

// words are the values of a list whose items may be joined by commas.
func (s setting) words() (list []string) {
	for _, v := range s.values {
		for word := range strings.SplitSeq(v, ",") {
			if word = strings.TrimSpace(word); word != "" {
				list = append(list, word)
			}
		}
	}
	return list
}

// settings are those that were given, by flag name.
type settings map[string]setting

// in lists the settings in the order of the groups' flags.
func (s settings) in(groups []flagGroup) []setting {
	var list []setting
	for _, f := range all(groups) {
		if one, ok := s[f.name]; ok {
			list = append(list, one)
		}
	}
	return list
}

// settle is for two ways to say the same: that from the stronger source
// counts, so that --host beats a url in the configuration, and both from the
// same source are a fault.
func (s settings) settle(one string, others []string, bad *faults) {
	strongest := 0
	for _, name := range others {
		strongest = max(strongest, s[name].source)
	}
	switch own := s[one].source; {
	case own > strongest:
		for _, name := range others {
			delete(s, name)
		}
	case own < strongest:
		delete(s, one)
	case own > 0:
		bad.usage("leave one of them out", "%s and --%s say the same thing twice", s[one].place, strings.Join(others, " or --"))
	}
}

// gather reads flags, environment and configuration file into one set. The
// faults of all three are returned at once; hints are about variables that
// nobody reads.
func (a *app) gather(c *cobra.Command, groups []flagGroup) (settings, faults) {
	var bad faults
	specs := map[string]flagSpec{}
	for _, f := range all(groups) {
		specs[f.name] = f
	}
	env := a.readEnv(specs, &bad)
	path, found := configPath(c, env)
	if quiet := c.Flags().Lookup("quiet"); found && quiet.Value.String() != "true" {
		a.warn("note: using %s of this directory", path)
	}
	config := readConfig(path, specs, &bad)

	// One viper per run of a command: two commands that bind a flag of the same
	// name into one would overwrite each other's.
	v := viper.New()
	for _, layer := range []map[string]setting{config, env} {
		values := map[string]any{}
		for name, s := range layer {
			values[name] = s.values
		}
		// The environment is merged over the file rather than bound, because
		// viper knows only the environment of the whole process.
		if err := v.MergeConfigMap(values); err != nil {
			bad.usage("", "configuration: %v", err)
		}
	}
	got := settings{}
	for name, spec := range specs {
		flag := c.Flags().Lookup(name)
		if err := v.BindPFlag(name, flag); err != nil {
			bad.usage("", "--%s: %v", name, err)
		}
		if !v.IsSet(name) {
			continue
		}
		s := setting{flagSpec: spec, values: texts(v.Get(name)), source: fromFlag, place: "--" + name}
		if slice, ok := flag.Value.(pflag.SliceValue); ok && flag.Changed {
			s.values = slice.GetSlice() // viper takes it through CSV, which folds line ends
		}
		if !flag.Changed {
			s.source, s.place = fromEnv, env[name].place
			if _, ok := env[name]; !ok {
				s.source, s.place = fromConfig, config[name].place
			}
		}
		got[name] = s
	}
	return got, bad
}

// flagSettings are the settings of a command that takes nothing but flags:
// variables and configuration files are about running.
func flagSettings(c *cobra.Command, groups []flagGroup) settings {
	got := settings{}
	for _, spec := range all(groups) {
		flag := c.Flags().Lookup(spec.name)
		if !flag.Changed {
			continue
		}
		s := setting{flagSpec: spec, values: []string{flag.Value.String()}, source: fromFlag, place: "--" + spec.name}
		if slice, ok := flag.Value.(pflag.SliceValue); ok {
			s.values = slice.GetSlice()
		}
		got[spec.name] = s
	}
	return got
}

// texts is a value of viper's as the text it was given as.
func texts(v any) []string {
	if list, ok := v.([]string); ok {
		return list
	}
	return []string{fmt.Sprint(v)}
}

// readEnv picks the variables that stand for flags. An empty one counts as not
// set, as is usual.
func (a *app) readEnv(specs map[string]flagSpec, bad *faults) map[string]setting {
	got := map[string]setting{}
	for _, kv := range a.Environ {
		key, value, _ := strings.Cut(kv, "=")
		rest, ours := strings.CutPrefix(key, envPrefix)
		if !ours || value == "" {
			continue
		}
		name := strings.ToLower(strings.ReplaceAll(rest, "_", "-"))
		spec, known := specs[name]
		if !known || key != envName(name) {
			a.warnUnknownEnv(key, name, specs)
			continue
		}
		s := setting{flagSpec: spec, values: splitEnv(spec, value), source: fromEnv, place: key}
		checkToggle(s, bad)
		got[name] = s
	}
	return got
}

func envName(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// splitEnv: a user property or a gate may contain commas, the other lists'
// values do not.
func splitEnv(spec flagSpec, value string) []string {
	switch {
	case spec.kind == list && (spec.name == "user-property" || spec.name == "fail-if"):
		return strings.Split(strings.TrimRight(value, "\n"), "\n")
	case spec.kind == list:
		return strings.Split(value, ",")
	}
	return []string{value}
}

func (a *app) warnUnknownEnv(key, name string, specs map[string]flagSpec) {
	if near := nearest(name, names(specs)); near != "" {
		a.warn("warning: %s is not a variable of mqttload, did you mean %s?", key, envName(near))
		return
	}
	a.warn("warning: %s is not a variable of mqttload: it is ignored", key)
}

func names(specs map[string]flagSpec) []string {
	var list []string
	for n := range specs {
		list = append(list, n)
	}
	slices.Sort(list)
	return list
}

// checkToggle is for switches of the tool; package scenarios checks its own.
func checkToggle(s setting, bad *faults) {
	if s.tool && s.kind == toggle && s.value() != "true" && s.value() != "false" {
		bad.usage("", "%s is true or false", s.place)
	}
}

// configPath is the configuration file: the one asked for, or the one that
// was found lying about; "" for none.
func configPath(c *cobra.Command, env map[string]setting) (path string, found bool) {
	if f := c.Flags().Lookup("config"); f.Changed {
		return f.Value.String(), false
	}
	if s, ok := env["config"]; ok {
		return s.value(), false
	}
	if _, err := os.Stat(defaultConfig); err == nil {
		return defaultConfig, true
	}
	return "", false
}

// readConfig reads a flat YAML map of long flag names. It takes scalars as
// they are written, so that a user named 0123 stays one; viper would read a
// number.
func readConfig(path string, specs map[string]flagSpec, bad *faults) map[string]setting {
	if path == "" {
		return nil
	}
	b, err := readSmall(path)
	if err != nil {
		bad.usage("", "--config %s: %v", path, err)
		return nil
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(b, &doc); err != nil {
		bad.usage("", "%s: %v", path, err)
		return nil
	}
	if len(doc.Content) == 0 {
		return nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		bad.usage("write lines like \"qos: 1\"", "%s:%d: the file must be a map of flag names", path, root.Line)
		return nil
	}
	got := map[string]setting{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		configKey(path, root.Content[i], root.Content[i+1], specs, got, bad)
	}
	return got
}

func configKey(path string, key, value *yaml.Node, specs map[string]flagSpec, got map[string]setting, bad *faults) {
	place := fmt.Sprintf("%s:%d: %s", path, key.Line, key.Value)
	spec, known := specs[key.Value]
	values, ok := scalars(value)
	_, twice := got[key.Value]
	switch {
	case !known && nearest(key.Value, names(specs)) != "":
		bad.usage("", "%s:%d: unknown key %q, did you mean %q?", path, key.Line, key.Value, nearest(key.Value, names(specs)))
	case !known:
		bad.usage("keys are the long names of flags; a scenario file is given as run's argument", "%s:%d: unknown key %q", path, key.Line, key.Value)
	case key.Value == "config":
		bad.usage("", "%s: a configuration cannot name another one", place)
	case twice:
		bad.usage("", "%s is given twice", place)
	case !ok:
		bad.usage("", "%s must be a value or a list of values", place)
	case len(values) > 0:
		if spec.kind != list {
			values = []string{strings.Join(values, ",")}
		}
		s := setting{flagSpec: spec, values: values, source: fromConfig, place: place}
		checkToggle(s, bad)
		got[key.Value] = s
	}
}

// scalars returns the texts of a scalar or a list of scalars. A key without
// value says nothing.
func scalars(n *yaml.Node) ([]string, bool) {
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		return nil, true
	case n.Kind == yaml.ScalarNode:
		return []string{n.Value}, true
	case n.Kind != yaml.SequenceNode:
		return nil, false
	}
	var values []string
	for _, item := range n.Content {
		if item.Kind != yaml.ScalarNode {
			return nil, false
		}
		values = append(values, item.Value)
	}
	return values, true
}

func readSmall(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, osCause(err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxConfigSize+1))
	switch {
	case err != nil:
		return nil, osCause(err)
	case len(b) > maxConfigSize:
		return nil, errors.New("larger than 1 MiB")
	}
	return b, nil
}

// osCause is the system's error without the path, which the caller names.
func osCause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
