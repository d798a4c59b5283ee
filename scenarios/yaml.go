package scenarios

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mqttload/mqttload/internal/text"
	"go.yaml.in/yaml/v3"
)

// maxFileSize bounds a scenario file, in bytes.
const maxFileSize = 1 << 20

// sections are the keys of a scenario file's top level.
var sections = []string{"name", "description", "target", "matrix", "load", "clients", "tls", "gates", "exclude"}

// Parse reads a scenario file. name is what messages call it, and relative
// paths in it are relative to its directory. Decoding is strict: every key is
// known, stands in its section and only once, and every value is taken as it
// is written. All faults of the file are returned at once, as [Errors].
func Parse(name string, data []byte) (*Scenario, error) {
	d := &decoder{file: name, dir: filepath.Dir(name), s: newScenario()}
	d.s.file, d.s.source = name, bytes.Clone(data)
	d.s.Name = strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
	d.document(data)
	if err := d.bad.err(); err != nil {
		return nil, err
	}
	return d.s, nil
}

// decoder walks the YAML nodes rather than decoding into a struct: that keeps
// line numbers, order, and scalars as they are written.
type decoder struct {
	file, dir string
	s         *Scenario
	bad       Errors
}

func (d *decoder) fail(line int, path, format string, args ...any) {
	d.bad = append(d.bad, Error{File: d.file, Line: line, Path: path, Msg: fmt.Sprintf(format, args...)})
}

func (d *decoder) document(data []byte) {
	if len(data) > maxFileSize {
		d.fail(0, "", "the scenario is larger than 1 MiB")
		return
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) || err == nil && (len(doc.Content) == 0 || isNull(doc.Content[0])) {
		d.fail(0, "", "the scenario is empty: write at least a matrix, such as matrix: {qos: [0, 1, 2]}")
		return
	}
	if err == nil {
		if err = dec.Decode(&second); err == nil {
			d.fail(second.Line, "", "the file holds a second document: a scenario is one")
		} else if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if err != nil {
		d.syntax(err)
		return
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode || len(root.Content) == 0 {
		d.fail(root.Line, "", "this is no scenario: it begins with keys such as matrix: and load:")
		return
	}
	d.mapping(root, "", func(key string, k, v *yaml.Node) { d.section(key, k, v) })
}

var (
	yamlLine = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?(.*)`)
	// yamlParser matches what the YAML library's parser says, other than its
	// scanner: there it counts lines from 0.
	yamlParser = regexp.MustCompile(`^(did not find expected (['<]|key|node)|found undefined tag handle)`)
)

// syntax passes on what the YAML reader says, with its line in our place.
func (d *decoder) syntax(err error) {
	line, msg := YAMLFault(err)
	d.fail(line, "", "%s", msg)
}

// YAMLFault is what a message may repeat of an error of the YAML reader, and
// the line from 1, 0 where it is not known. The names of anchors and tags are
// left out: who forgets the quotes around a password that begins with * writes one.
func YAMLFault(err error) (line int, msg string) {
	parts := yamlLine.FindStringSubmatch(strings.ReplaceAll(err.Error(), "\n", " "))
	line, err = strconv.Atoi(parts[1])
	switch msg = parts[2]; {
	case strings.Contains(msg, "anchor '"):
		return line, "anchors and aliases are not supported: quote a value that begins with & or *"
	case strings.Contains(msg, "tag '"):
		return line, "tags are not supported: quote a value that begins with !"
	case err == nil && yamlParser.MatchString(msg):
		line++
	}
	return line, "not YAML: " + msg
}

// mapping calls each for every key of a mapping that is sound and new.
func (d *decoder) mapping(node *yaml.Node, path string, each func(key string, k, v *yaml.Node)) {
	first := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		k, v := node.Content[i], node.Content[i+1]
		switch line, repeated := first[k.Value]; {
		case k.Kind != yaml.ScalarNode || k.Anchor != "" || k.Style&yaml.TaggedStyle != 0 || k.Tag == "!!merge":
			d.fail(k.Line, path, "a key must be a plain word: tags, anchors, aliases and merge keys are not supported")
		case isNull(v) && v.Value == "" && strings.Contains(k.Value, ":"):
			// {user: u, password:s3cret} is one key without a value.
			d.fail(k.Line, join(path, keyOf(k.Value)), "key %s has no space behind its colon: write %s: VALUE", quoted(keyOf(k.Value)), keyOf(k.Value))
		case repeated:
			d.fail(k.Line, join(path, keyOf(k.Value)), "key %s is there twice, first in line %d", quoted(keyOf(k.Value)), line)
		default:
			first[k.Value] = k.Line
			each(k.Value, k, v)
		}
	}
}

// keyOf is a key as messages may repeat it: what comes behind a colon may be a
// password.
func keyOf(text string) string {
	key, _, _ := strings.Cut(text, ":")
	return key
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func (d *decoder) section(key string, k, v *yaml.Node) {
	switch key {
	case "name", "description":
		if text, ok := d.scalar(v, key); ok && key == "name" {
			d.s.Name = text
		} else if ok {
			d.s.Description = text
		}
	case "target", "matrix", "load", "clients", "tls":
		if v.Kind != yaml.MappingNode {
			d.fail(v.Line, key, "section %s must hold keys with values: fill it or remove it", key)
			return
		}
		d.mapping(v, key, func(name string, k, v *yaml.Node) { d.key(key, name, k, v) })
	case "gates":
		if list, ok := d.scalars(v, key, true); ok {
			for _, n := range list {
				d.s.Gates = append(d.s.Gates, n.Value)
				d.s.gatePlaces = append(d.s.gatePlaces, place{file: d.file, line: n.Line})
			}
		}
	case "exclude":
		if list, ok := d.scalars(v, key, true); ok {
			for _, n := range list {
				d.s.Exclude = append(d.s.Exclude, n.Value)
			}
			d.s.places[key] = place{file: d.file, line: k.Line}
		}
	default:
		d.unknown("", key, k, v)
	}
}

// key sets one key of a section.
func (d *decoder) key(section, name string, k, v *yaml.Node) {
	f := fieldOf(name)
	path := join(section, name)
	inMatrix := section == "matrix" && f != nil && f.axis
	switch {
	case f == nil || f.section != section && !inMatrix:
		d.unknownIn(section, name, k, v)
		return
	case inMatrix && d.s.places[name] != (place{}) || section != "matrix" && d.isAxis(name):
		d.fail(k.Line, path, "%s is in matrix and in %s: keep one", name, f.section)
		return
	}
	nodes, ok := d.values(f, section, v)
	if !ok {
		return
	}
	texts := make([]string, len(nodes))
	for i, n := range nodes {
		texts[i] = n.Value
	}
	if d.morePasswords(f, k) {
		return
	}
	d.s.places[name] = place{file: d.file, line: k.Line}
	field := *f
	if section != "matrix" {
		field.axis = false // one value for every case
	}
	at := func(i int) place { return place{file: d.file, line: nodes[i].Line} }
	d.bad = append(d.bad, d.s.put(&field, d.dir, texts, at, false)...)
}

func (d *decoder) isAxis(name string) bool {
	return slices.ContainsFunc(d.s.axes, func(a axis) bool { return a.key == name })
}

// morePasswords refuses a password that is given in two ways.
func (d *decoder) morePasswords(f *field, k *yaml.Node) bool {
	ways := []string{"password", "password_file", "password_env"}
	if !slices.Contains(ways, f.key) {
		return false
	}
	for _, other := range ways {
		if other != f.key && d.s.places[other] != (place{}) {
			d.fail(k.Line, "clients."+f.key, "%s and %s are both given: keep one", other, f.key)
			return true
		}
	}
	return false
}

// values returns the nodes of a key's values: one, or those of a list where the key takes one.
func (d *decoder) values(f *field, section string, v *yaml.Node) ([]*yaml.Node, bool) {
	path := join(section, f.key)
	if f.key == "user_properties" && v.Kind == yaml.MappingNode {
		return d.properties(v, path)
	}
	list := section == "matrix" || f.parse == nil && f.many != single
	if !list && v.Kind == yaml.SequenceNode {
		if f.axis {
			d.fail(v.Line, path, "%s takes one value in %s: list it in matrix to make it an axis", f.key, f.section)
		} else {
			d.fail(v.Line, path, "%s takes one value, not a list", f.key)
		}
		return nil, false
	}
	nodes, ok := d.scalars(v, path, list)
	// An empty list of targets means the embedded broker; an axis without
	// values would mean no case at all.
	if ok && len(nodes) == 0 && section == "matrix" {
		d.fail(v.Line, path, "%s has no values", f.key)
		return nil, false
	}
	return nodes, ok && len(nodes) > 0
}

// properties turns a mapping into the flag's form, NAME=VALUE.
func (d *decoder) properties(v *yaml.Node, path string) ([]*yaml.Node, bool) {
	var nodes []*yaml.Node
	before := len(d.bad)
	d.mapping(v, path, func(name string, k, v *yaml.Node) {
		if strings.Contains(name, "=") {
			d.fail(k.Line, path, "the name of a user property cannot hold = here")
			return
		}
		if text, ok := d.scalar(v, join(path, name)); ok {
			nodes = append(nodes, &yaml.Node{Kind: yaml.ScalarNode, Value: name + "=" + text, Line: v.Line})
		}
	})
	return nodes, len(d.bad) == before && len(nodes) > 0
}

// scalars returns the scalars of a list, or a single scalar as a list of one.
func (d *decoder) scalars(v *yaml.Node, path string, list bool) ([]*yaml.Node, bool) {
	if v.Kind != yaml.SequenceNode || !list {
		_, ok := d.scalar(v, path)
		return []*yaml.Node{v}, ok
	}
	sound := true
	for i, n := range v.Content {
		if _, ok := d.scalar(n, fmt.Sprintf("%s[%d]", path, i)); !ok {
			sound = false
		}
	}
	return v.Content, sound
}

// scalar returns a scalar as it is written. Aliases are refused: they would let
// a small file stand for a huge one.
func (d *decoder) scalar(n *yaml.Node, path string) (string, bool) {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		d.fail(n.Line, path, "anchors and aliases are not supported: write the value out, and quote one that begins with & or *")
	case n.Kind != yaml.ScalarNode:
		d.fail(n.Line, path, "%s takes a single value here", path)
	case isNull(n):
		d.fail(n.Line, path, "%s has no value: write \"\" for an empty one, or remove it", path)
	case n.Style&yaml.TaggedStyle != 0:
		d.fail(n.Line, path, "tags are not supported: quote a value that begins with !")
	default:
		return n.Value, true
	}
	return "", false
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// quoted is for keys: always in quotes, and short.
func quoted(s string) string {
	if text := text.Quote(s); strings.HasPrefix(text, `"`) {
		return text
	}
	return `"` + text.Quote(s) + `"`
}

// unknownIn is about a key that is not one of its section: it may be one of
// another, or of a later version.
func (d *decoder) unknownIn(section, name string, k, v *yaml.Node) {
	path := join(section, name)
	if later[name] == section {
		// What turns the feature off is as good as nothing.
		if v.Kind == yaml.ScalarNode && (v.Value == "0" || v.Value == "0s" || v.Value == "false") {
			return
		}
		d.fail(k.Line, path, "%s is not supported yet in this version: remove it", name)
		return
	}
	if f := fieldOf(name); f != nil {
		d.fail(k.Line, path, "%s belongs to %s", name, f.section)
		return
	}
	d.unknown(section, name, k, v)
}

func (d *decoder) unknown(section, name string, k, v *yaml.Node) {
	path := join(section, keyOf(name))
	if f := fieldOf(name); f != nil {
		d.fail(k.Line, path, "%s belongs to %s", name, f.section)
		return
	}
	var here, elsewhere []string
	for _, f := range fields {
		if f.section == section || section == "matrix" && f.axis {
			here = append(here, f.key)
		} else {
			elsewhere = append(elsewhere, f.key)
		}
	}
	if section == "" {
		here = sections
	}
	if near := text.Nearest(keyOf(name), here); near != "" {
		d.fail(k.Line, path, "unknown key %s, did you mean %q?", quoted(keyOf(name)), near)
	} else if near := text.Nearest(keyOf(name), elsewhere); near != "" {
		d.fail(k.Line, path, "unknown key %s, did you mean %q, which belongs to %s?", quoted(keyOf(name)), near, fieldOf(near).section)
	} else if isNull(v) && v.Value == "" {
		// {password: s3,cret} has a part of the value as its second key.
		d.fail(k.Line, section, "a word without a value stands where a key is expected: quote a value that holds a comma")
	} else {
		d.fail(k.Line, path, "unknown key %s: known here are %s", quoted(keyOf(name)), strings.Join(here, ", "))
	}
}
