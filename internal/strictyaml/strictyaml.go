// Package strictyaml reads the part of YAML that configuration needs: one document
// of mappings, lists and scalars. [Parse] returns a tree of [Node] in which every
// scalar is as it is written, so that a user named 0123 stays one, and every
// [Fault] of the file at once, with its line. Anchors, aliases, tags, merge keys
// and repeated keys are faults.
//
// Decoding into structs with known fields would be shorter, and would lose the
// order of keys, the lines of values and the leading zeros of numbers.
package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mqttload/mqttload/internal/text"
)

// MaxSize bounds a document, in bytes.
const MaxSize = 1 << 20

// maxDepth bounds how deep values are nested: no configuration comes near.
const maxDepth = 16

// Fault is one thing that is wrong with a file. It never repeats what may be a
// password: a value, or what follows a colon without a space.
type Fault struct {
	Line   int    // from 1; 0 where the fault has no line
	Path   string // as [Node.Path]
	Cause  string
	Remedy string // may be empty
}

// Error returns cause and remedy.
func (f Fault) Error() string {
	if f.Remedy == "" {
		return f.Cause
	}
	return f.Cause + ": " + f.Remedy
}

// Parse returns the root of the only document, nil for an empty file and for one
// that is not YAML. Nodes below it that are at fault are [Invalid].
func Parse(data []byte) (*Node, []Fault) {
	if len(data) > MaxSize {
		return nil, []Fault{{Cause: "the file is larger than 1 MiB"}}
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	err := dec.Decode(&doc)
	if err == nil {
		if err = dec.Decode(&second); err == nil {
			return nil, []Fault{{Line: second.Line, Cause: "the file holds a second document", Remedy: "remove one of them"}}
		}
	}
	if !errors.Is(err, io.EOF) {
		return nil, []Fault{syntax(err)}
	}
	if len(doc.Content) == 0 || isNull(doc.Content[0]) {
		return nil, nil
	}
	var b builder
	return b.node(doc.Content[0], "", 0), b.faults
}

var (
	yamlLine = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?(.*)`)
	// yamlParser matches what the YAML library's parser says, other than its
	// scanner: there it counts lines from 0.
	yamlParser = regexp.MustCompile(`^(did not find expected (['<]|key|node)|found undefined tag handle)`)
)

// syntax is the fault that the YAML library found. The names of anchors and tags
// are left out: a password that begins with * and has no quotes is one.
func syntax(err error) Fault {
	parts := yamlLine.FindStringSubmatch(strings.ReplaceAll(err.Error(), "\n", " "))
	line, err := strconv.Atoi(parts[1])
	switch msg := parts[2]; {
	case strings.Contains(msg, "anchor '"):
		return Fault{Line: line, Cause: "anchors and aliases are not supported", Remedy: "quote a value that begins with & or *"}
	case strings.Contains(msg, "tag '"):
		return Fault{Line: line, Cause: "tags are not supported", Remedy: "quote a value that begins with !"}
	case err == nil && yamlParser.MatchString(msg):
		return Fault{Line: line + 1, Cause: "not YAML", Remedy: msg}
	default:
		return Fault{Line: line, Cause: "not YAML", Remedy: msg}
	}
}

// builder turns the library's nodes into ours.
type builder struct{ faults []Fault }

func (b *builder) fail(line int, path, remedy, format string, args ...any) {
	b.faults = append(b.faults, Fault{Line: line, Path: path, Cause: fmt.Sprintf(format, args...), Remedy: remedy})
}

func (b *builder) node(y *yaml.Node, path string, depth int) *Node {
	n := &Node{Line: y.Line, Path: path, Text: y.Value}
	switch {
	case y.Kind == yaml.AliasNode || y.Anchor != "":
		b.fail(y.Line, path, "write the value out, and quote one that begins with & or *", "anchors and aliases are not supported")
	case y.Style&yaml.TaggedStyle != 0:
		b.fail(y.Line, path, "quote a value that begins with !", "tags are not supported")
	case depth > maxDepth:
		b.fail(y.Line, path, "", "values are nested more than %d deep", maxDepth)
	case y.Kind == yaml.MappingNode:
		n.Kind, n.Pairs = Mapping, b.pairs(y, path, depth+1)
	case y.Kind == yaml.SequenceNode:
		n.Kind = List
		for i, item := range y.Content {
			n.Items = append(n.Items, b.node(item, fmt.Sprintf("%s[%d]", path, i), depth+1))
		}
	case isNull(y):
		n.Kind = Null
	default:
		n.Kind = Scalar
	}
	return n
}

// pairs returns the pairs whose keys are sound and new.
func (b *builder) pairs(y *yaml.Node, path string, depth int) []Pair {
	var list []Pair
	first := map[string]int{}
	for i := 0; i+1 < len(y.Content); i += 2 {
		k, v := y.Content[i], y.Content[i+1]
		name, _, colon := strings.Cut(k.Value, ":")
		at := join(path, name)
		switch line, repeated := first[k.Value]; {
		case k.Kind != yaml.ScalarNode || k.Anchor != "" || k.Style&yaml.TaggedStyle != 0 || k.Tag == "!!merge":
			b.fail(k.Line, path, "", "a key must be a plain word: tags, anchors, aliases and merge keys are not supported")
		case colon && isNull(v) && v.Value == "":
			// {user: u, password:s3cret} is one key without a value.
			name = text.Short(name)
			b.fail(k.Line, at, fmt.Sprintf("write %s: VALUE", name), "key %q has no space after its colon", name)
		case repeated:
			b.fail(k.Line, at, "", "key %q is given twice, first in line %d", text.Short(name), line)
		default:
			first[k.Value] = k.Line
			list = append(list, Pair{Key: k.Value, Name: name, Line: k.Line, Value: b.node(v, at, depth)})
		}
	}
	return list
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }
