package cmd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mqttload/mqttload/internal/bench"
	"github.com/mqttload/mqttload/internal/file"
	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/scenarios"
)

// maxConfigSize bounds a configuration file and one of gates, in bytes.
const maxConfigSize = 1 << 20

// configFile is a configuration file while it is being read.
type configFile struct {
	path  string
	specs map[string]flagSpec // of this command, by key
	seen  map[string]bool
	got   map[string]setting // by flag name
	bad   *bench.Faults
}

// readConfig reads a flat YAML map of long flag names. It takes scalars as
// they are written, so that a user named 0123 stays one; viper would read a
// number. It is as strict as a scenario file is read.
func readConfig(path string, specs map[string]flagSpec, bad *bench.Faults) map[string]setting {
	if path == "" {
		return nil
	}
	b, err := file.Read(path, maxConfigSize)
	if err != nil {
		bad.Usage("", "--config %s: %v", path, err)
		return nil
	}
	f := &configFile{path: path, specs: specs, seen: map[string]bool{}, got: map[string]setting{}, bad: bad}
	root := f.document(b)
	switch {
	case root == nil:
	case root.Kind != yaml.MappingNode:
		f.fail(root.Line, "write lines like \"qos: 1\"", "the file must be a map of flag names")
	default:
		for i := 0; i+1 < len(root.Content); i += 2 {
			f.key(root.Content[i], root.Content[i+1])
		}
	}
	return f.got
}

func (f *configFile) fail(line int, hint, format string, args ...any) {
	place := f.path
	if line > 0 {
		place = fmt.Sprintf("%s:%d", f.path, line)
	}
	f.bad.Usage(hint, "%s: %s", place, fmt.Sprintf(format, args...))
}

// document returns the root of the only document, nil for an empty file.
func (f *configFile) document(b []byte) *yaml.Node {
	dec := yaml.NewDecoder(bytes.NewReader(b))
	var doc, second yaml.Node
	err := dec.Decode(&doc)
	if err == nil {
		if err = dec.Decode(&second); err == nil {
			f.fail(second.Line, "remove one of them", "the file holds a second document")
			return nil
		}
	}
	if !errors.Is(err, io.EOF) {
		line, msg := scenarios.YAMLFault(err)
		f.fail(line, "", "%s", msg)
		return nil
	}
	if len(doc.Content) == 0 || noValue(doc.Content[0]) {
		return nil
	}
	return doc.Content[0]
}

func noValue(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// key takes one key with its value. What stands behind a colon without a space
// is not repeated: it may be a password.
func (f *configFile) key(key, value *yaml.Node) {
	name, rest, joined := strings.Cut(key.Value, ":")
	absent := noValue(value) && value.Value == ""
	switch {
	case key.Kind != yaml.ScalarNode || key.Anchor != "" || key.Style&yaml.TaggedStyle != 0 || key.Tag == "!!merge":
		f.fail(key.Line, "", "a key must be a plain word: tags, anchors, aliases and merge keys are not supported")
	case joined && rest != "" && absent:
		f.fail(key.Line, fmt.Sprintf("write %s: VALUE", printable(name)), "key %q has no space behind its colon", name)
	case everyKey()[key.Value].name == "":
		f.unknown(key.Line, name, absent)
	case key.Value == "config":
		f.fail(key.Line, "", "config: a configuration cannot name another one")
	case f.seen[key.Value]:
		f.fail(key.Line, "", "%s is given twice", key.Value)
	default:
		f.seen[key.Value] = true
		f.set(key, value)
	}
}

func (f *configFile) unknown(line int, name string, absent bool) {
	switch near := text.Nearest(name, names(everyKey())); {
	case near != "":
		f.fail(line, "", "unknown key %q, did you mean %q?", name, near)
	case absent:
		// {password: s3,cret} has a part of the value as its second key.
		f.fail(line, "quote a value that holds a comma", "a word without a value stands where a key is expected")
	default:
		f.fail(line, "keys are the long names of flags; a scenario file is given as run's argument", "unknown key %q", name)
	}
}

// set keeps the value of a key that this command has.
func (f *configFile) set(key, value *yaml.Node) {
	spec, own := f.specs[key.Value]
	if !own {
		spec = everyKey()[key.Value]
	}
	axis := slices.Contains(scenarios.AxisKeys(), strings.ReplaceAll(key.Value, "-", "_"))
	values, cause, hint := scalars(value, spec.kind == list || axis)
	if cause != "" {
		f.fail(key.Line, hint, "%s %s", key.Value, cause)
		return
	}
	if own {
		if spec.kind != list {
			values = []string{strings.Join(values, ",")}
		}
		s := setting{flagSpec: spec, values: values, source: fromConfig, place: fmt.Sprintf("%s:%d: %s", f.path, key.Line, key.Value)}
		checkToggle(s, f.bad)
		f.got[spec.name] = s
	}
}

// scalars returns the texts of a scalar or, where many may stand, of a list of
// scalars; or else what is wrong with it, and the remedy.
func scalars(n *yaml.Node, many bool) (values []string, cause, hint string) {
	if n.Kind != yaml.SequenceNode || n.Anchor != "" || n.Style&yaml.TaggedStyle != 0 {
		cause, hint = notPlain(n)
		return []string{n.Value}, cause, hint
	}
	if !many {
		return nil, "takes one value, not a list", "quote a value that begins with ["
	}
	for _, item := range n.Content {
		if cause, hint = notPlain(item); cause != "" {
			return nil, cause, hint
		}
		values = append(values, item.Value)
	}
	if len(values) == 0 {
		return nil, "has no values", "list one, or remove the key"
	}
	return values, "", ""
}

// notPlain says why a value is not a scalar that can be taken as it is written.
func notPlain(n *yaml.Node) (cause, hint string) {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return "has an anchor or an alias, which are not supported", "write the value out, and quote one that begins with & or *"
	case n.Style&yaml.TaggedStyle != 0:
		return "has a tag, which are not supported", "quote a value that begins with !"
	case n.Kind != yaml.ScalarNode:
		return "must be a value or a list of values", ""
	case noValue(n):
		return "has no value", "write \"\" for an empty one, quote one that begins with #, or remove the key"
	}
	return "", ""
}
