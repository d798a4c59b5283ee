package scenarios

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mqttload/mqttload/internal/file"
	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/tlsconf"
)

// Credential is the identity of one client: a row of a credentials file. The
// field of a column that the file does not have is empty.
type Credential struct {
	ID, User, Password   string
	HasUser, HasPassword bool   // whether the file has the column
	CertFile, KeyFile    string // client certificate and key, relative to the file's directory
	line                 int
}

// Credentials reads a credentials file row by row. It is not safe for
// concurrent use. [Credentials.Close] closes the file.
type Credentials struct {
	name    string
	file    *os.File
	rows    *csv.Reader
	columns [len(credentialColumns)]int // index by column, -1 for none
}

// credentialColumns are the names a header may have.
var credentialColumns = [...]string{"id", "user", "password", "cert", "key"}

// OpenCredentials opens a CSV file whose first row names its columns, in any
// order, of id, user, password, cert and key. Errors name the file and the line.
func OpenCredentials(path string) (*Credentials, error) {
	f, err := file.Open(path)
	if err != nil {
		return nil, fmt.Errorf("credentials file %s: %w", text.Quote(path), err)
	}
	c := &Credentials{name: path, file: f, rows: csv.NewReader(skipMark(f))}
	c.rows.ReuseRecord = true
	if err := c.header(); err != nil {
		_ = f.Close()
		return nil, err
	}
	return c, nil
}

// skipMark drops the byte order mark that spreadsheets write.
func skipMark(r io.Reader) io.Reader {
	b := bufio.NewReader(r)
	if head, _ := b.Peek(3); string(head) == "\ufeff" {
		_, _ = b.Discard(3) // they are buffered
	}
	return b
}

func (c *Credentials) header() error {
	names, err := c.rows.Read()
	if errors.Is(err, io.EOF) {
		return c.fail(1, "is empty: its first row names the columns, of %s", strings.Join(credentialColumns[:], ", "))
	}
	if err != nil {
		return c.csvError(err)
	}
	for i := range c.columns {
		c.columns[i] = -1
	}
	for i, name := range names {
		known := slices.Index(credentialColumns[:], strings.TrimSpace(name))
		switch {
		case known < 0:
			// The name is not shown: without a header it may be a password.
			return c.fail(1, "column %d of the header is not one of %s: the first row names the columns", i+1, strings.Join(credentialColumns[:], ", "))
		case c.columns[known] >= 0:
			return c.fail(1, "column %s is given twice", credentialColumns[known])
		}
		c.columns[known] = i
	}
	if c.columns[4] >= 0 && c.columns[3] < 0 {
		return c.fail(1, "column key needs a column cert")
	}
	return nil
}

// Next returns the next row, and [io.EOF] after the last one.
func (c *Credentials) Next() (Credential, error) {
	row, err := c.rows.Read()
	if errors.Is(err, io.EOF) {
		return Credential{}, io.EOF
	}
	if err != nil {
		return Credential{}, c.csvError(err)
	}
	line, _ := c.rows.FieldPos(0)
	get := func(column int) string {
		if i := c.columns[column]; i >= 0 {
			return strings.Clone(row[i]) // the row's memory is used again
		}
		return ""
	}
	one := Credential{
		ID: get(0), User: get(1), Password: get(2), HasUser: c.columns[1] >= 0, HasPassword: c.columns[2] >= 0,
		CertFile: c.path(get(3)), KeyFile: c.path(get(4)), line: line,
	}
	return one, c.check(&one)
}

func (c *Credentials) path(name string) string { return resolve(filepath.Dir(c.name), name) }

// check rejects a row that no CONNECT packet can carry.
func (c *Credentials) check(one *Credential) error {
	switch {
	case c.columns[0] >= 0 && one.ID == "":
		return c.fail(one.line, "the id is empty")
	case len(one.ID) > maxBinary, len(one.User) > maxBinary, len(one.Password) > maxBinary:
		return c.fail(one.line, "a value is over MQTT's limit of 65,535 bytes")
	}
	for i, text := range []string{one.ID, one.User} {
		// [MQTT-3.1.3-4] [MQTT-3.1.3-11]
		if err := checkText(credentialColumns[i], text); err != nil {
			return c.fail(one.line, "%v", err)
		}
	}
	return nil
}

// hasIDs reports whether the file has a column of client ids.
func (c *Credentials) hasIDs() bool { return c.columns[0] >= 0 }

// Close closes the file.
func (c *Credentials) Close() error { return c.file.Close() }

func (c *Credentials) fail(line int, format string, args ...any) error {
	return fmt.Errorf("credentials file %s:%d: %s", text.Quote(c.name), line, fmt.Sprintf(format, args...))
}

// csvError is an error of the CSV reader without the row, which holds a password.
func (c *Credentials) csvError(err error) error {
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		return c.fail(parse.Line, "%v", parse.Err)
	}
	return fmt.Errorf("credentials file %s: %w", text.Quote(c.name), file.Cause(err))
}

// columnsOf reads only the header: whether the file has client ids, and whether it
// has both user names and passwords.
func columnsOf(path string) (ids, auth bool, err error) {
	c, err := OpenCredentials(path)
	if err != nil {
		return false, false, err
	}
	return c.hasIDs(), c.columns[1] >= 0 && c.columns[2] >= 0, c.Close()
}

// checkFiles rejects a row whose certificate or key is not a file.
func (c *Credentials) checkFiles(one *Credential) error {
	for i, path := range []string{one.CertFile, one.KeyFile} {
		if path == "" {
			continue
		}
		if err := file.Check(path); err != nil {
			// The path is not shown: where columns are mixed up it may be a password.
			return c.fail(one.line, "the file of column %s: %v", credentialColumns[3+i], err)
		}
	}
	return nil
}

// rowCheck is what the rows of a credentials file must be fit for.
type rowCheck struct {
	clients int
	scram   bool                       // clients authenticate by SCRAM
	tls     *tlsconf.Options           // reads the certificates; nil without TLS
	names   func(tlsconf.Field) string // what messages call its fields; nil for their own names
	read    map[[2]string]bool         // pairs of certificate and key that are sound
}

// keyPair reads the certificate of a row and its key as those of all clients are read.
func (k *rowCheck) keyPair(c *Credentials, one *Credential) error {
	pair := [2]string{one.CertFile, one.KeyFile}
	if k.tls == nil || pair == [2]string{} || k.read[pair] {
		return nil
	}
	_, err := k.tls.KeyPair(one.CertFile, one.KeyFile)
	var fault *tlsconf.FieldError
	switch {
	case errors.As(err, &fault):
		return c.fail(one.line, "%s", fault.Named(func(f tlsconf.Field) string {
			if f == tlsconf.KeyPasswordFile && k.names != nil {
				return k.names(f)
			}
			return string(f) // usually a column
		}))
	case err != nil:
		return c.fail(one.line, "%v", err)
	}
	k.read[pair] = true
	return nil
}

// checkCredentials reads the rows of all clients once. Each must be sound, and fit
// for SCRAM if the case authenticates by it. Certificates need TLS.
func checkCredentials(path string, k rowCheck) error {
	c, err := OpenCredentials(path)
	if err != nil {
		return err
	}
	defer c.Close()
	if c.columns[3] >= 0 && k.tls == nil {
		return c.fail(1, "column cert needs transport tls: add it to transport, or remove the column")
	}
	k.read = map[[2]string]bool{}
	for n := range k.clients {
		one, err := c.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("credentials file %s has %s for %s: add rows or ask for fewer clients", text.Quote(path), text.Count(n, "row"), text.Count(k.clients, "client"))
		}
		if err == nil {
			err = c.checkFiles(&one)
		}
		if err == nil {
			err = k.keyPair(c, &one)
		}
		if err == nil && k.scram && !(text.IsASCII(one.User) && text.IsASCII(one.Password)) {
			err = c.fail(one.line, "auth_method %s takes user names and passwords of printable ASCII characters", SCRAMSHA256)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
