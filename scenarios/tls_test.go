package scenarios

import (
	"os"
	"testing"
)

// TestCheckTLS: a fault in the section tls is told the way its value was given,
// by its flag, or by its key and line.
func TestCheckTLS(t *testing.T) {
	encrypted, err := os.ReadFile("../tlsconf/testdata/aes256-sha256.key")
	if err != nil {
		t.Fatal(err)
	}
	key, none := writeFile(t, "k.key", string(encrypted)), t.TempDir()+"/none.pem"
	for _, c := range []struct {
		name, in string
		settings []string
		want     []string
	}{
		{"flags", "name: x", []string{"cafile", none, "cert", none, "key", key}, []string{
			"--cafile " + none + ": no such file or directory", "--cert " + none + ": no such file or directory",
			"--key " + key + ": the key is encrypted: give --key-password-file"}},
		{"keys", "name: x\ntls:\n  cafile: " + none + "\n  cert: " + none + "\n  key: " + key, nil, []string{
			"x.yaml:3: cafile " + none + ": no such file or directory", "x.yaml:4: cert " + none + ": no such file or directory",
			"x.yaml:5: key " + key + ": the key is encrypted: give key_password_file"}},
		{"a flag over a key", "tls: {cafile: a, key: " + key + "}", []string{"cafile", none},
			[]string{"--cafile " + none + ": no such file or directory", "x.yaml:1: key " + key + " without a certificate: give cert too"}},
		{"a key without its certificate", "name: x", []string{"key", key}, []string{"--key " + key + " without a certificate: give --cert too"}},
		{"versions by flags", "name: x", []string{"tls-min", "1.3", "tls-max", "1.2"}, []string{"--tls-min 1.3 is above --tls-max 1.2: swap them"}},
		{"versions by both", "tls: {tls_min: 1.3}", []string{"tls-max", "1.2"}, []string{"x.yaml:1: tls_min 1.3 is above --tls-max 1.2: swap them"}},
		{"an old version", "name: x\ntls: {tls_max: 1.1}", nil, []string{"x.yaml:2: tls_max 1.1 is below the default minimum, 1.2: give tls_min too"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := set(t, parse(t, c.in), c.settings...)
			checkErrors(t, s.CheckTLS(), c.want...)
			if _, err := s.Cases(); err != nil {
				t.Errorf("the cases: %v", err)
			}
		})
	}
	if err := parse(t, "tls: {insecure: true}").CheckTLS(); err != nil {
		t.Errorf("nothing to read: %v", err)
	}
}
