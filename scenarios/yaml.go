package scenarios

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mqttload/mqttload/internal/strictyaml"
	"github.com/mqttload/mqttload/internal/text"
)

// sections are the keys of a scenario file's top level.
var sections = []string{"name", "description", "target", "matrix", "load", "clients", "tls", "gates", "exclude"}

// Parse reads a scenario file. name is what messages call it, and relative
// paths in it are relative to its directory. Decoding is strict: every key must be
// known, in its section and given once, and values are taken as they are written.
// All faults of the file are returned at once, as [Errors].
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

// decoder sets what a scenario file says, and collects its faults.
type decoder struct {
	file, dir string
	s         *Scenario
	bad       Errors
}

func (d *decoder) fail(line int, path, format string, args ...any) {
	d.bad = append(d.bad, Error{File: d.file, Line: line, Path: path, Msg: fmt.Sprintf(format, args...)})
}

func (d *decoder) fault(f strictyaml.Fault) { d.fail(f.Line, f.Path, "%s", f.Error()) }

func (d *decoder) document(data []byte) {
	root, faults := strictyaml.Parse(data)
	for _, f := range faults {
		d.fault(f)
	}
	switch {
	case root == nil && faults == nil:
		d.fail(0, "", "the scenario is empty: write at least a matrix, such as matrix: {qos: [0, 1, 2]}")
	case root == nil:
	case root.Kind != strictyaml.Mapping || root.Pairs == nil && faults == nil:
		d.fail(root.Line, "", "this is not a scenario: one begins with keys such as matrix: and load:")
	default:
		for _, p := range root.Pairs {
			d.section(p)
		}
	}
}

func (d *decoder) section(p strictyaml.Pair) {
	key, v := p.Key, p.Value
	switch key {
	case "name", "description":
		if text, ok := v.Scalar(d.fault); ok && key == "name" {
			d.s.Name = text
		} else if ok {
			d.s.Description = text
		}
	case "target", "matrix", "load", "clients", "tls":
		switch v.Kind {
		case strictyaml.Mapping:
			for _, p := range v.Pairs {
				d.key(key, p)
			}
		case strictyaml.Invalid:
		default:
			d.fail(v.Line, key, "section %s must hold keys with values: fill it or remove it", key)
		}
	case "gates":
		if list, ok := v.Scalars(d.fault); ok {
			for _, n := range list {
				d.s.Gates = append(d.s.Gates, n.Text)
				d.s.gatePlaces = append(d.s.gatePlaces, place{file: d.file, line: n.Line})
			}
		}
	case "exclude":
		if list, ok := v.Scalars(d.fault); ok {
			for _, n := range list {
				d.s.Exclude = append(d.s.Exclude, n.Text)
			}
			d.s.places[key] = place{file: d.file, line: p.Line}
		}
	default:
		d.unknown("", p)
	}
}

// key sets one key of a section.
func (d *decoder) key(section string, p strictyaml.Pair) {
	name, f := p.Key, fieldOf(p.Key)
	inMatrix := section == "matrix" && f != nil && f.axis
	switch {
	case f == nil || f.section != section && !inMatrix:
		d.unknownIn(section, p)
		return
	case inMatrix && d.s.places[name] != (place{}) || section != "matrix" && d.isAxis(name):
		d.fail(p.Line, p.Value.Path, "%s is in matrix and in %s: keep one", name, f.section)
		return
	}
	nodes, ok := d.values(f, section, p.Value)
	if !ok || d.morePasswords(f, p) {
		return
	}
	texts := make([]string, len(nodes))
	for i, n := range nodes {
		texts[i] = n.Text
	}
	d.s.places[name] = place{file: d.file, line: p.Line}
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
func (d *decoder) morePasswords(f *field, p strictyaml.Pair) bool {
	ways := []string{"password", "password_file", "password_env"}
	if !slices.Contains(ways, f.key) {
		return false
	}
	for _, other := range ways {
		if other != f.key && d.s.places[other] != (place{}) {
			d.fail(p.Line, p.Value.Path, "%s and %s are both given: keep one", other, f.key)
			return true
		}
	}
	return false
}

// values returns the nodes of a key's values: one, or those of a list where the key takes one.
func (d *decoder) values(f *field, section string, v *strictyaml.Node) ([]*strictyaml.Node, bool) {
	if f.key == "user_properties" && v.Kind == strictyaml.Mapping {
		return d.properties(v)
	}
	switch list := section == "matrix" || f.parse == nil && f.many != single; {
	case !list && v.Kind == strictyaml.List && f.axis:
		d.fail(v.Line, v.Path, "%s takes one value in %s: list it in matrix to make it an axis", f.key, f.section)
		return nil, false
	case !list:
		_, ok := v.Scalar(d.fault)
		return []*strictyaml.Node{v}, ok
	}
	nodes, ok := v.Scalars(d.fault)
	// An empty list of targets means the embedded broker; an axis without
	// values would mean no case at all.
	if ok && len(nodes) == 0 && section == "matrix" {
		d.fail(v.Line, v.Path, "%s has no values", f.key)
	}
	return nodes, ok && len(nodes) > 0
}

// properties turns a mapping into the flag's form, NAME=VALUE.
func (d *decoder) properties(v *strictyaml.Node) ([]*strictyaml.Node, bool) {
	var nodes []*strictyaml.Node
	before := len(d.bad)
	for _, p := range v.Pairs {
		if strings.Contains(p.Key, "=") {
			d.fail(p.Line, v.Path, "the name of a user property cannot hold = here")
		} else if text, ok := p.Value.Scalar(d.fault); ok {
			nodes = append(nodes, &strictyaml.Node{Kind: strictyaml.Scalar, Text: p.Key + "=" + text, Line: p.Value.Line})
		}
	}
	return nodes, len(d.bad) == before && len(nodes) > 0
}

// unknownIn is about a key that is not one of its section: it may be one of
// another, or of a later version.
func (d *decoder) unknownIn(section string, p strictyaml.Pair) {
	name, v := p.Key, p.Value
	if later[name] != section {
		d.unknown(section, p)
		return
	}
	// A value that turns the feature off changes nothing.
	if v.Kind != strictyaml.Scalar || v.Text != "0" && v.Text != "0s" && v.Text != "false" {
		d.fail(p.Line, v.Path, "%s is not supported yet in this version: remove it", name)
	}
}

func (d *decoder) unknown(section string, p strictyaml.Pair) {
	if f := fieldOf(p.Key); f != nil {
		d.fail(p.Line, p.Value.Path, "%s belongs to %s", p.Key, f.section)
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
	name := text.Short(p.Name)
	if near := text.Nearest(p.Name, here); near != "" {
		d.fail(p.Line, p.Value.Path, "unknown key %q, did you mean %q?", name, near)
	} else if near := text.Nearest(p.Name, elsewhere); near != "" {
		d.fail(p.Line, p.Value.Path, "unknown key %q, did you mean %q, which belongs to %s?", name, near, fieldOf(near).section)
	} else if p.Value.Absent() {
		// {password: s3,cret} has a part of the value as its second key.
		d.fail(p.Line, section, "found a word without a value instead of a key: quote a value that holds a comma")
	} else {
		d.fail(p.Line, p.Value.Path, "unknown key %q: known here are %s", name, strings.Join(here, ", "))
	}
}
