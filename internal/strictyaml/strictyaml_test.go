package strictyaml

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// shape is a tree as a text: 'word', null, [list], {key: value}, ! for Invalid.
func shape(n *Node) string {
	var parts []string
	switch {
	case n == nil:
		return "nothing"
	case n.Kind == Scalar:
		return "'" + n.Text + "'"
	case n.Kind == Null:
		return "null"
	case n.Kind == List:
		for _, item := range n.Items {
			parts = append(parts, shape(item))
		}
		return "[" + strings.Join(parts, " ") + "]"
	case n.Kind == Mapping:
		for _, p := range n.Pairs {
			parts = append(parts, p.Key+":"+shape(p.Value))
		}
		return "{" + strings.Join(parts, " ") + "}"
	}
	return "!"
}

func TestParse(t *testing.T) {
	for in, want := range map[string]string{
		"": "nothing", "# nothing": "nothing", "~": "nothing", "---\n": "nothing",
		"a": "'a'", "- a": "['a']", "{}": "{}", "[]": "[]",
		"b: 0123\na: [0x10, 1.50, yes, \"~\", '']": "{b:'0123' a:['0x10' '1.50' 'yes' '~' '']}",
		"a:\nb: ~\nc: null":                        "{a:null b:null c:null}",
		"a: {b: {c: [1]}}":                         "{a:{b:{c:['1']}}}",
		"a: |\n  x\n  y\n":                         "{a:'x\ny\n'}",
	} {
		root, faults := Parse([]byte(in))
		if got := shape(root); got != want || faults != nil {
			t.Errorf("%q: %s, %v, want %s", in, got, faults, want)
		}
	}
}

func TestParsePlaces(t *testing.T) {
	root, _ := Parse([]byte("a: 1\nb:\n  c: [x,\n    y]\n"))
	c := root.Pairs[1].Value.Pairs[0]
	if y := c.Value.Items[1]; y.Line != 4 || y.Path != "b.c[1]" || c.Line != 3 || c.Value.Path != "b.c" || root.Path != "" || root.Line != 1 {
		t.Errorf("%+v %+v", c, y)
	}
}

func TestParseFaults(t *testing.T) {
	const alias = "anchors and aliases are not supported: write the value out, and quote one that begins with & or *"
	const key = "a key must be a plain word: tags, anchors, aliases and merge keys are not supported"
	for in, want := range map[string][]string{
		"a: 1\n---\nb: 2\n":          {"2: the file holds a second document: remove one of them"},
		"a: &s3cret 1":               {"1 a: " + alias},
		"a: &s3cret [1]\nb: *s3cret": {"1 a: " + alias, "2 b: " + alias},
		"a: *s3cret":                 {"0: anchors and aliases are not supported: quote a value that begins with & or *"},
		"a: !s3cret 1":               {"1 a: tags are not supported: quote a value that begins with !"},
		"a: 1\nb: !s3cret!x\n":       {"2: not YAML: found undefined tag handle"},
		"a: [1, !!int 2]":            {"1 a[1]: tags are not supported: quote a value that begins with !"},
		"x: {<<: {a: 1}}":            {"1 x: " + key},
		"? [a]\n: 1\n":               {"1: " + key},
		"&x a: 1":                    {"1: " + key},
		"{user: u, password:s3cret}": {`1 password: key "password" has no space after its colon: write password: VALUE`},
		"a: 1\na: 2\na: 3":           {`2 a: key "a" is given twice, first in line 1`, `3 a: key "a" is given twice, first in line 1`},
		"{a:s3cret: 1, a:s3cret: 2}": {`1 a: key "a" is given twice, first in line 1`},
		"a: \"\n":                    {"2: not YAML: found unexpected end of stream"},
		"a: [1\nb: 2\n":              {"2: not YAML: did not find expected ',' or ']'"},
		"a: \xff\xfe":                {"0: not YAML: invalid leading UTF-8 octet"},
		strings.Repeat("[", 18) + strings.Repeat("]", 18): {"1 " + strings.Repeat("[0]", 17) + ": values are nested more than 16 deep"},
		"a: " + strings.Repeat("x", MaxSize):              {"0: the file is larger than 1 MiB"},
	} {
		_, faults := Parse([]byte(in))
		var got []string
		for _, f := range faults {
			got = append(got, strings.TrimSpace(fmt.Sprintf("%d %s", f.Line, f.Path))+": "+f.Error())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%.60q:\n%s\nwant\n%s", in, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if strings.Contains(strings.Join(got, ""), "s3cret") {
			t.Errorf("%q: a password is shown", in)
		}
	}
}

func TestScalars(t *testing.T) {
	root, _ := Parse([]byte("one: a\nlist: [a, b]\nnull: ~\nempty: []\nmap: {a: 1}\nmixed: [a, [b], ~]\nbad: [a, &x b]\nanchored: &y a"))
	for i, want := range []struct {
		texts  []string
		ok     bool
		faults []string
	}{
		{[]string{"a"}, true, nil},
		{[]string{"a", "b"}, true, nil},
		{[]string{"~"}, false, []string{`null has no value: write "" for an empty one, quote one that begins with #, or remove it`}},
		{nil, true, nil},
		{[]string{""}, false, []string{"map takes a value, not keys with values: quote a value that begins with {"}},
		{[]string{"a", "", "~"}, false, []string{"mixed[1] takes one value, not a list: quote a value that begins with [",
			`mixed[2] has no value: write "" for an empty one, quote one that begins with #, or remove it`}},
		{[]string{"a", "b"}, false, nil},
		{[]string{"a"}, false, nil},
	} {
		var faults, texts []string
		nodes, ok := root.Pairs[i].Value.Scalars(func(f Fault) { faults = append(faults, f.Error()) })
		for _, n := range nodes {
			texts = append(texts, n.Text)
		}
		if !slices.Equal(texts, want.texts) || ok != want.ok || !slices.Equal(faults, want.faults) {
			t.Errorf("%s: %q, %t, %q", root.Pairs[i].Key, texts, ok, faults)
		}
	}
	if v := root.Pairs[2].Value; v.Absent() {
		t.Error("~ is absent")
	}
	if absent, _ := Parse([]byte("a:")); !absent.Pairs[0].Value.Absent() {
		t.Error("nothing is not absent")
	}
}

// FuzzParse: no input makes Parse panic, and what has no fault has a sound tree.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "a: 1", "a: [b, {c: ~}]", "a: &x [*x]", "<<: {a: 1}", "a:b\n", "---\n---\n", "a: 1\na: 2", "? [x]\n: y", "\xff", "%YAML 1.1\n---\na"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		root, faults := Parse(data)
		if faults == nil && strings.Contains(shape(root), "!") && !strings.Contains(string(data), "!") {
			t.Errorf("%s without a fault", shape(root))
		}
	})
}
