package strictyaml

// Kind is what a node is.
type Kind int

// The kinds of nodes. Parse has returned a [Fault] for an Invalid one.
const (
	Invalid Kind = iota
	Scalar
	Null
	List
	Mapping
)

// Node is a value of a document.
type Node struct {
	Kind  Kind
	Line  int     // from 1
	Path  string  // "matrix.qos[1]"; "" for the root
	Text  string  // a scalar as it is written, without its quotes
	Items []*Node // of a list
	Pairs []Pair  // of a mapping, in the order of the file, without those at fault
}

// Pair is a key of a mapping with its value.
type Pair struct {
	Key   string
	Name  string // what messages may repeat of Key: what follows a colon may be a password
	Line  int
	Value *Node
}

// Absent reports whether nothing at all stands where a value should.
func (n *Node) Absent() bool { return n.Kind == Null && n.Text == "" }

// Scalar returns the text of a scalar. For any other node ok is false, and fail
// is called unless that is known.
func (n *Node) Scalar(fail func(Fault)) (text string, ok bool) {
	f := Fault{Line: n.Line, Path: n.Path}
	switch n.Kind {
	case Scalar:
		return n.Text, true
	case Null:
		f.Cause, f.Remedy = n.Path+" has no value", `write "" for an empty one, quote one that begins with #, or remove it`
	case List:
		f.Cause, f.Remedy = n.Path+" takes one value, not a list", "quote a value that begins with ["
	case Mapping:
		f.Cause, f.Remedy = n.Path+" takes a value, not keys with values", "quote a value that begins with {"
	}
	if n.Kind != Invalid {
		fail(f)
	}
	return "", false
}

// Scalars returns the scalars of a list, or one scalar as a list of itself. ok is
// false where any is not a scalar, and fail is called for each as by [Node.Scalar].
func (n *Node) Scalars(fail func(Fault)) (list []*Node, ok bool) {
	if n.Kind != List {
		_, ok = n.Scalar(fail)
		return []*Node{n}, ok
	}
	ok = true
	for _, item := range n.Items {
		if _, sound := item.Scalar(fail); !sound {
			ok = false
		}
	}
	return n.Items, ok
}
