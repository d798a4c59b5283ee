package tlsconf

import (
	"fmt"
	"slices"
	"strings"
)

// A Field is one of the [Options] by its name: its key in the section tls of a
// scenario. Messages mention fields; the code that shows a message names each field
// as the user gave it: as a flag or as a key of a file.
type Field string

// The fields that messages mention.
const (
	CAFile          Field = "cafile"
	CAPath          Field = "capath"
	Cert            Field = "cert"
	Key             Field = "key"
	KeyPasswordFile Field = "key_password_file"
	ServerName      Field = "servername"
	ALPN            Field = "alpn"
	MinVersion      Field = "tls_min"
	MaxVersion      Field = "tls_max"
	Curves          Field = "curves"
	// On is not one of the options: it says that the connection is over TLS.
	On Field = "tls"
)

// A FieldError is a fault in the value of a field. For a field of files the value
// is the path of one of them.
type FieldError struct {
	Field Field
	Value string
	Err   error // for a file that cannot be read, the operating system's error
}

// Error returns field, value and cause in one line, each field by its own name.
func (e *FieldError) Error() string { return e.Named(ownName) }

// Named is Error with name for what to call a field.
func (e *FieldError) Named(name func(Field) string) string {
	cause := e.Cause(name)
	if !strings.HasPrefix(cause, e.Value+" ") {
		cause = e.Value + ": " + cause
	}
	return name(e.Field) + " " + cause
}

// Cause returns what is wrong with the value, without the field. name returns what
// to call the other fields that the cause mentions.
func (e *FieldError) Cause(name func(Field) string) string {
	if m, ok := e.Err.(*message); ok {
		return m.text(name)
	}
	return e.Err.Error()
}

// Unwrap returns the cause.
func (e *FieldError) Unwrap() error { return e.Err }

// fault returns a [FieldError]. The fields among args stay fields until a caller
// of Named gives them names.
func fault(f Field, value, format string, args ...any) error {
	return &FieldError{Field: f, Value: value, Err: &message{format, args}}
}

// A message is an error that mentions fields.
type message struct {
	format string
	args   []any
}

func (m *message) Error() string { return m.text(ownName) }

// Unwrap returns the error that the message is about, or nil.
func (m *message) Unwrap() error {
	for _, a := range m.args {
		if err, ok := a.(error); ok {
			return err
		}
	}
	return nil
}

func (m *message) text(name func(Field) string) string {
	args := slices.Clone(m.args)
	for i, a := range args {
		if f, ok := a.(Field); ok {
			args[i] = name(f)
		}
	}
	return fmt.Sprintf(m.format, args...)
}

func ownName(f Field) string { return string(f) }
