package scenarios

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mqttload/mqttload/internal/text"
	"github.com/mqttload/mqttload/tlsconf"
)

func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCredentials(t *testing.T) {
	path := writeFile(t, "c.csv", "\ufeffuser,id,cert,password,key\r\n0123,dev-1,a.pem,\"p,\"\"1%i\",/k.pem\r\n,dev-2,,,\r\n")
	c, err := OpenCredentials(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	dir := filepath.Dir(path)
	for _, want := range []Credential{
		{ID: "dev-1", User: "0123", Password: `p,"1%i`, HasUser: true, HasPassword: true, CertFile: dir + "/a.pem", KeyFile: "/k.pem", line: 2},
		{ID: "dev-2", HasUser: true, HasPassword: true, line: 3},
	} {
		if got, err := c.Next(); err != nil || got != want {
			t.Errorf("%+v %v, want %+v", got, err, want)
		}
	}
	if _, err := c.Next(); err != io.EOF {
		t.Errorf("behind the last row: %v", err)
	}
}

func TestCredentialsErrors(t *testing.T) {
	for in, want := range map[string]string{
		"":                            ":1: is empty: its first row names the columns, of id, user, password, cert, key",
		"dev1,s3cret\n":               ":1: column 1 of the header is not one of id, user, password, cert, key: the first row names the columns",
		"id,id\n":                     ":1: column id is given twice",
		"id,key\n":                    ":1: column key needs a column cert",
		"id\nok\n\"\"\n":              ":3: the id is empty",
		"id,user\na,b\nc\n":           ":3: wrong number of fields",
		"id\na\n\"s3cret\nb\n":        ":4: extraneous or missing \" in quoted-field",
		"id,user\na,b\nc,\"a\x01\"\n": ":3: user contains a control character [MQTT5 1.5.4]",
		"id\na\n" + strings.Repeat("x", 70_000) + "\n": ":3: a value is over MQTT's limit of 65,535 bytes",
	} {
		path := writeFile(t, "c.csv", in)
		err := checkCredentials(path, rowCheck{clients: 9, tls: &tlsconf.Options{}})
		if err == nil || err.Error() != "credentials file "+text.Quote(path)+want {
			t.Errorf("%.20q: %v", in, err)
		}
	}
	if _, err := OpenCredentials("/dev/zero"); err == nil || !strings.Contains(err.Error(), "device") {
		t.Errorf("a device: %v", err)
	}
}

func TestCredentialsOfScenario(t *testing.T) {
	path := writeFile(t, "c.csv", "id,password\na,x\nb,y\nc,z\n")
	base := func() *Scenario { return set(t, parse(t, "clients: {client_id: one}"), "credentials", path) }
	if c := casesOf(t, base())[0]; c.Clients.Credentials != path {
		t.Errorf("%+v", c.Clients)
	}
	_, err := set(t, base(), "pairs", "2").Cases()
	checkErrors(t, err, "--credentials: credentials file "+text.Quote(path)+" has 3 rows for 4 clients: add rows or ask for fewer clients")
	_, err = set(t, base(), "credentials", path+"x").Cases()
	if err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("missing: %v", err)
	}
	// Who connects does not change what is measured.
	if base().Hash() != parse(t, "clients: {client_id: one}").Hash() {
		t.Error("credentials are in the hash")
	}
}

// TestCredentialFiles: certificates are looked for before anything is sent, and
// are for TLS.
func TestCredentialFiles(t *testing.T) {
	path := writeFile(t, "c.csv", "cert,key\nclient.pem,\n,\nclient.pem,none.key\n")
	bundle, err := tlsconf.ThrowAway(nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	o := bundle.ClientOptions()
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "client.pem"), slices.Concat(o.CertPEM, o.KeyPEM), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := func(in string) error {
		_, err := set(t, parse(t, in), "credentials", path).Cases()
		return err
	}
	if err := cases("target: {url: mqtts://h}"); err != nil {
		t.Errorf("two clients: %v", err)
	}
	checkErrors(t, cases("target: {url: mqtts://h}\nload: {subscribers: 2}"),
		"--credentials: credentials file "+text.Quote(path)+":4: the file of column key: no such file or directory")
	checkErrors(t, cases("target: {url: mqtt://h}"),
		"--credentials: credentials file "+text.Quote(path)+":1: column cert needs transport tls: add it to transport, or remove the column")
}

// TestCredentialKeyPairs: the certificates of rows are read as those of all
// clients are: in every form, and with the same words about the same faults.
func TestCredentialKeyPairs(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pemKey, err := os.ReadFile("../tlsconf/testdata/plain.key")
	if err != nil {
		t.Fatal(err)
	}
	encrypted, err := os.ReadFile("../tlsconf/testdata/aes256-sha256.key")
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(pemKey)
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "c"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.(crypto.Signer).Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	pemCert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	write("c.pem", pemCert)
	write("c.der", der)
	write("c.key", pemKey)
	write("key.der", block.Bytes)
	write("both.pem", slices.Concat([]byte("\ufeff"), pemCert, pemKey))
	write("locked.key", encrypted)
	write("password", []byte("known\n"))
	write("wrong", []byte("unknown\n"))
	other, err := tlsconf.ThrowAway(nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	write("other.key", other.ClientOptions().KeyPEM)
	for _, c := range []struct{ row, password, want string }{
		{"c.pem,c.key", "", ""}, {"c.der,key.der", "", ""}, {"both.pem,", "", ""}, {"c.pem,locked.key", "password", ""},
		{"c.pem,locked.key", "", "key PATH/locked.key: the key is encrypted: give --key-password-file"},
		{"c.pem,locked.key", "wrong", "key PATH/locked.key: the key cannot be decrypted: check the password in --key-password-file"},
		{"c.pem,", "", "cert PATH/c.pem: no private key found in PATH/c.pem: give key"},
		{"c.key,c.key", "", "cert PATH/c.key: no certificate found in PATH/c.key: it holds PRIVATE KEY"},
		{"c.pem,other.key", "", `key PATH/other.key: the key does not belong to the first certificate of cert PATH/c.pem ("c")`},
		{",c.key", "", "key PATH/c.key without a certificate: give cert too"},
	} {
		path := filepath.Join(dir, "rows.csv")
		write("rows.csv", []byte("cert,key\n"+c.row+"\n"+c.row+"\n"))
		s := set(t, parse(t, "target: {url: mqtts://h}"), "credentials", path)
		if c.password != "" {
			s = set(t, s, "key_password_file", filepath.Join(dir, c.password))
		}
		_, err := s.Cases()
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", c.row, err)
			}
			continue
		}
		checkErrors(t, err, "--credentials: credentials file "+text.Quote(path)+":2: "+strings.ReplaceAll(c.want, "PATH", dir))
	}
	// A check without names for the fields uses their own.
	write("rows.csv", []byte("cert,key\nc.pem,locked.key\n"))
	err = checkCredentials(filepath.Join(dir, "rows.csv"), rowCheck{clients: 1, tls: &tlsconf.Options{}})
	if err == nil || !strings.HasSuffix(err.Error(), ": the key is encrypted: give key_password_file") {
		t.Error(err)
	}
}

func TestWill(t *testing.T) {
	s := parse(t, "matrix: {protocol: 5}\nclients: {will_topic: 'last/%c', will_payload: 'gone %i', will_qos: 1, will_retain: true, will_delay: 5s}")
	w := casesOf(t, s)[0].Clients.Will
	if w == nil || *w != (Will{Topic: "last/%c", Payload: "gone %i", QoS: 1, Retain: true, Delay: 5 * time.Second}) {
		t.Errorf("%+v", w)
	}
	if w := casesOf(t, parse(t, "clients: {will_qos: 0, will_retain: false}"))[0].Clients.Will; w != nil {
		t.Errorf("a will that is turned off: %+v", w)
	}
	for in, want := range map[string]string{
		"will_payload: x":               "will_payload without a will_topic: give will_topic",
		"will_topic: a, will_delay: 5s": "will_delay needs protocol 5, and the matrix has only 3.1.1: add 5 to protocol or remove will_delay",
	} {
		_, err := parse(t, "clients: {"+in+"}").Cases()
		checkErrors(t, err, "x.yaml:1: "+want)
	}
	for in, want := range map[string]string{
		"will_topic: a/#":   "will_topic a/#: will_topic ",
		"will_qos: 3":       "will_qos 3: will_qos must be 0, 1 or 2",
		"will_delay: 5":     "will_delay 5 has no unit: write 5s",
		"will_payload: 50%": "will_payload 50%: will_payload ends with a single %: write %% for a percent sign",
	} {
		_, err := Parse("x.yaml", []byte("clients: {"+in+"}"))
		if err == nil || !strings.HasPrefix(err.Error(), "x.yaml:1: "+want) {
			t.Errorf("%s: %v", in, err)
		}
	}
}
