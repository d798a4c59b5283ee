package tlsconf

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func write(t *testing.T, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCAFiles(t *testing.T) {
	dir := t.TempDir()
	ca := newCA(t, time.Now())
	plain := certPEM(ca.cert.Raw)
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte{1}})
	good := write(t, dir, "ca.pem", plain)
	tests := []struct {
		name    string
		options Options
		want    string // "" is success; PATH stands for the directory
	}{
		{"PEM", Options{CAFiles: []string{good}}, ""},
		{"DER", Options{CAFiles: []string{write(t, dir, "ca.der", ca.cert.Raw)}}, ""},
		{"BOM", Options{CAFiles: []string{write(t, dir, "bom.pem", append([]byte("\xef\xbb\xbf"), plain...))}}, ""},
		{"CRLF", Options{CAFiles: []string{write(t, dir, "crlf.pem", bytes.ReplaceAll(plain, []byte("\n"), []byte("\r\n")))}}, ""},
		{"text around", Options{CAFiles: []string{write(t, dir, "text.pem", []byte("subject: x\n"+string(plain)+"end\n"))}}, ""},
		{"directory of CAs", Options{CAPath: dir}, ""},
		{"missing", Options{CAFiles: []string{dir + "/none.pem"}}, "--cafile PATH/none.pem: no such file or directory"},
		{"second missing", Options{CAFiles: []string{good, dir + "/none.pem"}}, "--cafile PATH/none.pem: no such file or directory"},
		{"directory", Options{CAFiles: []string{dir}}, "--cafile PATH: is a directory, not a file"},
		{"key", Options{CAFiles: []string{write(t, dir, "key.pem", keyPEM)}}, "--cafile PATH/key.pem: no certificate found in PATH/key.pem: it holds PRIVATE KEY"},
		{"empty", Options{CAFiles: []string{write(t, dir, "empty.pem", nil)}}, "--cafile PATH/empty.pem: no certificate found in PATH/empty.pem: the file is empty"},
		{"junk", Options{CAFiles: []string{write(t, dir, "junk.pem", []byte("hello"))}}, "--cafile PATH/junk.pem: no certificate found in PATH/junk.pem: it is neither PEM nor DER"},
		{"damaged", Options{CAFiles: []string{write(t, dir, "bad.pem", certPEM([]byte{1, 2}))}}, "--cafile PATH/bad.pem: certificate 1 of the file is damaged: "},
		{"missing directory", Options{CAPath: dir + "/none"}, "--capath PATH/none: no such file or directory"},
		{"file as directory", Options{CAPath: good}, "--capath PATH/ca.pem: not a directory"},
		{"directory without", Options{CAPath: t.TempDir()}, "no certificate found in any file of directory"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := tt.options.ClientConfig("localhost")
			if tt.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if _, err := ca.leaf(t, nil).Leaf.Verify(x509.VerifyOptions{Roots: c.RootCAs}); err != nil {
					t.Error(err)
				}
				return
			}
			checkFileError(t, err, strings.ReplaceAll(tt.want, "PATH", dir))
		})
	}
}

// TestAllFilesAtOnce: whoever mends one file should not have to run again to
// hear of the next.
func TestAllFilesAtOnce(t *testing.T) {
	_, err := Options{CAFiles: []string{"no/a.pem", "no/b.pem"}, CAPath: "no/dir", CertFile: "no/c.pem", KeyFile: "no/k.pem"}.ClientConfig("localhost")
	want := "--cafile no/a.pem: no such file or directory\n--cafile no/b.pem: no such file or directory\n--capath no/dir: no such file or directory\n" +
		"--cert no/c.pem: no such file or directory\n--key no/k.pem: no such file or directory"
	if asFlags(err) != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	if list := Faults(errors.Join(err, errors.New("more"))); len(list) != 6 || list[4].Error() != "key no/k.pem: no such file or directory" {
		t.Errorf("taken apart: %q", list)
	}
	if list := Faults(nil); len(list) != 0 {
		t.Errorf("of nothing: %q", list)
	}
	if _, err = (Options{CertFile: "no/c.pem"}).ClientConfig("localhost"); asFlags(err) != "--cert no/c.pem: no such file or directory" {
		t.Errorf("certificate and key in one file: %v", err)
	}
}

// asFlags is err as somebody sees it who gave everything by flags.
func asFlags(err error) string {
	var lines []string
	for _, one := range Faults(err) {
		line := one.Error()
		if e, ok := one.(*FieldError); ok {
			line = e.Named(asFlag)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func asFlag(f Field) string { return "--" + strings.ReplaceAll(string(f), "_", "-") }

func checkFileError(t *testing.T, err error, want string) {
	t.Helper()
	var fieldErr *FieldError
	if !errors.As(err, &fieldErr) || !strings.Contains(asFlags(err), want) {
		t.Errorf("error %v (%T)\n want %s", err, err, want)
	}
	if strings.Contains(want, "no such file") && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v is not fs.ErrNotExist", err)
	}
}

// keyForms returns one key pair per kind and encoding: certificate, key file.
func keyForms(t *testing.T, ca testCA) map[string][2][]byte {
	t.Helper()
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, der []byte, err error) []byte {
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	}
	certFor := func(key crypto.Signer) []byte {
		template := leafTemplate("client", time.Now(), x509.ExtKeyUsageClientAuth)
		der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key.Public(), ca.key)
		if err != nil {
			t.Fatal(err)
		}
		return certPEM(der)
	}
	pkcs8 := func(key crypto.Signer) []byte {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		return block("PRIVATE KEY", der, err)
	}
	sec1DER, err := x509.MarshalECPrivateKey(ecKey)
	sec1 := block("EC PRIVATE KEY", sec1DER, err)
	params := block("EC PARAMETERS", []byte{0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07}, nil)
	ecCert := certFor(ecKey)
	return map[string][2][]byte{
		"PKCS#1":              {certFor(rsaKey), block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey), nil)},
		"PKCS#8 RSA":          {certFor(rsaKey), pkcs8(rsaKey)},
		"PKCS#8 EC":           {ecCert, pkcs8(ecKey)},
		"SEC 1":               {ecCert, sec1},
		"SEC 1 DER":           {ecCert, sec1DER},
		"EC PARAMETERS":       {ecCert, append(params, sec1...)},
		"Ed25519":             {certFor(edKey), pkcs8(edKey)},
		"CRLF":                {bytes.ReplaceAll(ecCert, []byte("\n"), []byte("\r\n")), bytes.ReplaceAll(sec1, []byte("\n"), []byte("\r\n"))},
		"BOM":                 {append([]byte("\xef\xbb\xbf"), ecCert...), append([]byte("\xef\xbb\xbf"), sec1...)},
		"one file":            {append(bytes.Clone(ecCert), sec1...), nil},
		"one file, key first": {append(bytes.Clone(sec1), ecCert...), nil},
	}
}

func TestKeyForms(t *testing.T) {
	ca := newCA(t, time.Now())
	server := serverConfig(ca.leaf(t, nil))
	server.ClientAuth = tls.RequireAndVerifyClientCert
	server.ClientCAs = x509.NewCertPool()
	server.ClientCAs.AddCert(ca.cert)
	for name, form := range keyForms(t, ca) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			o := ca.options()
			o.CertFile = write(t, dir, "c.pem", form[0])
			if form[1] != nil {
				o.KeyFile = write(t, dir, "c.key", form[1])
			}
			if _, err := handshake(t, clientConfig(t, o, "localhost"), server); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestKeyFaults(t *testing.T) {
	dir := t.TempDir()
	bundle, err := ThrowAway(nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	cert := write(t, dir, "c.pem", bundle.clientPEM[0])
	key := write(t, dir, "c.key", bundle.clientPEM[1])
	other := write(t, dir, "s.key", bundle.serverPEM[1])
	password := write(t, dir, "pw", []byte("wrong\n"))
	tests := []struct {
		name           string
		cert, key, pwd string
		want           string
	}{
		{"cert missing", dir + "/none", key, "", "--cert PATH/none: no such file or directory"},
		{"key missing", cert, dir + "/none", "", "--key PATH/none: no such file or directory"},
		{"key is a directory", cert, dir, "", "--key PATH: is a directory, not a file"},
		{"key not given", cert, "", "", "--cert PATH/c.pem: no private key found in PATH/c.pem: give --key"},
		{"key without key", cert, cert, "", "--key PATH/c.pem: no private key found in PATH/c.pem"},
		{"files swapped", key, cert, "", "--cert PATH/c.key: no certificate found in PATH/c.key: it holds PRIVATE KEY"},
		{"key of another", cert, other, "", `--key PATH/s.key: the key does not belong to the first certificate of --cert PATH/c.pem ("mqttload throw-away client")`},
		{"encrypted", cert, "testdata/aes256-sha256.key", "", "--key testdata/aes256-sha256.key: the key is encrypted: give --key-password-file"},
		{"password file missing", cert, "testdata/aes256-sha256.key", dir + "/none", "--key-password-file PATH/none: no such file or directory"},
		{"wrong password", cert, "testdata/aes256-sha256.key", password, "--key testdata/aes256-sha256.key: "},
		{"old encryption", cert, "testdata/legacy.key", password, "uses the old PEM encryption"},
		{"other cipher", cert, "testdata/des3.key", password, "encryption of the key is not supported"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Options{CertFile: tt.cert, KeyFile: tt.key, KeyPasswordFile: tt.pwd}.ClientConfig("localhost")
			checkFileError(t, err, strings.ReplaceAll(tt.want, "PATH", dir))
		})
	}
	_, err = Options{KeyFile: key}.ClientConfig("localhost")
	if asFlags(err) != "--key "+key+" without a certificate: give --cert too" {
		t.Errorf("key alone: %v", err)
	}
}

// The keys of testdata were made by openssl pkcs8 -topk8 from plain.key with the password "known".
func TestEncryptedKeys(t *testing.T) {
	want, err := readKey(Key, "testdata/plain.key", "")
	if err != nil {
		t.Fatal(err)
	}
	password := write(t, t.TempDir(), "pw", []byte("known\r\n"))
	for _, name := range []string{"aes256-sha256.key", "aes128-sha1.key"} {
		got, err := readKey(Key, "testdata/"+name, password)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !want.Public().(*ecdsa.PublicKey).Equal(got.Public()) {
			t.Errorf("%s: another key", name)
		}
	}
}

func FuzzDecryptPKCS8(f *testing.F) {
	for _, name := range []string{"aes256-sha256.key", "aes128-sha1.key", "des3.key"} {
		data, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		block, _ := pem.Decode(data)
		f.Add(block.Bytes, "known")
	}
	f.Fuzz(func(t *testing.T, der []byte, password string) {
		var key encryptedKey
		if _, err := asn1.Unmarshal(der, &key); err == nil && key.Algorithm.Params.KDF.Params.Iterations > 10_000 {
			t.Skip("slow by design")
		}
		plain, err := decryptPKCS8(der, password)
		if (err == nil) == (plain == nil) {
			t.Errorf("plain %x with error %v", plain, err)
		}
	})
}
