package scenarios

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// object is a JSON object that keeps the order of its keys, because the order of
// the axes is the order of the cases.
type object []member

type member struct {
	key   string
	value any
}

// MarshalJSON writes the members in their order.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := json.Marshal(m.key)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// Effective is the scenario with settings and defaults filled in, for the report:
// a value that marshals to JSON, in the form of a scenario file. A password is
// "***", and URLs have no user information.
func (s *Scenario) Effective() any {
	doc := object{{"name", s.Name}}
	if s.Description != "" {
		doc = append(doc, member{"description", s.Description})
	}
	doc = append(doc, s.sections(func(*field) bool { return true })...)
	if len(s.Gates) > 0 {
		doc = append(doc, member{"gates", s.Gates})
	}
	if len(s.Exclude) > 0 {
		doc = append(doc, member{"exclude", s.Exclude})
	}
	return doc
}

// sections holds the keys that keep selects, by section, in the order of a file.
func (s *Scenario) sections(keep func(*field) bool) object {
	var doc object
	for _, name := range []string{"target", "matrix", "load", "clients", "tls"} {
		content := s.section(name, keep)
		if name == "matrix" {
			content = s.matrix()
		}
		if len(content) > 0 {
			doc = append(doc, member{name, content})
		}
	}
	return doc
}

func (s *Scenario) section(name string, keep func(*field) bool) object {
	var content object
	for i := range fields {
		f := &fields[i]
		if f.section != name || f.get == nil || !keep(f) || s.hasAxis(f.key) {
			continue
		}
		if v := s.show(f); v != nil {
			content = append(content, member{f.key, v})
		}
	}
	return content
}

// show is the value of a field. A target given as host and port is shown as url,
// and a port only if it was written.
func (s *Scenario) show(f *field) any {
	if f.key != "url" {
		return f.get(s)
	}
	urls := s.base.Target.URLs
	if s.host != "" || s.port != "" {
		if u, err := s.hostURL(); err == nil {
			urls = []URL{u}
		}
	}
	var list []string
	for _, u := range urls {
		text := u.String()
		if !u.HasPort {
			text = text[:strings.LastIndexByte(text, ':')]
		}
		list = append(list, text)
	}
	return listOrNil(list)
}

func (s *Scenario) matrix() object {
	var content object
	for _, a := range s.allAxes() {
		sources := make([]string, len(a.values))
		for i, v := range a.values {
			sources[i] = v.source
		}
		content = append(content, member{a.key, sources})
	}
	return content
}

// unhashed are the keys that may differ between runs that measure the same: they
// say who connects and hold secrets.
var unhashed = []string{
	"username", "password", "password_file", "password_env", "client_id", "credentials",
	"cafile", "capath", "cert", "key", "key_password_file", "servername",
}

// Hash is the SHA-256, in hexadecimal, of what is measured: the matrix with the
// bytes of payload files, the load, the options of all clients, and the transport.
// It does not depend on target, names, user, password, client id, paths of
// certificates, or gates. Runs with different hashes measured different things.
func (s *Scenario) Hash() string {
	doc := s.sections(func(f *field) bool {
		return f.section != "target" && !slices.Contains(unhashed, f.key)
	})
	if len(s.Exclude) > 0 {
		doc = append(doc, member{"exclude", s.Exclude})
	}
	for _, p := range s.payloads() {
		content := p.Data
		switch p.Kind {
		case PayloadTrace:
			content = fmt.Append(nil, p.sizes.list, p.stages)
		case PayloadFile:
		default:
			continue
		}
		sum := sha256.Sum256(content)
		doc = append(doc, member{p.Name, hex.EncodeToString(sum[:])})
	}
	if !s.hasAxis("transport") {
		base, _ := s.resolved()
		doc = append(doc, member{"transport", base.Transport})
	}
	// Strings, numbers and lists always marshal.
	data, _ := json.Marshal(doc)
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
