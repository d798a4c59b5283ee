package tlsconf

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestClientConfigDefaults(t *testing.T) {
	c := clientConfig(t, Options{}, "broker.example")
	if c.RootCAs != nil || c.InsecureSkipVerify || c.MinVersion != tls.VersionTLS12 || c.MaxVersion != 0 ||
		c.ServerName != "broker.example" || !c.DynamicRecordSizingDisabled || c.Certificates != nil {
		t.Errorf("defaults: %+v", c)
	}
}

func TestServerName(t *testing.T) {
	tests := []struct{ option, host, want string }{
		{"", "h", "h"},
		{"", "127.0.0.1", "127.0.0.1"},
		{"", "::1", "::1"},
		{"", "[::1]", "::1"},
		{"", "fe80::1%lo", "fe80::1"},
		{"name", "127.0.0.1", "name"},
	}
	for _, tt := range tests {
		if got := clientConfig(t, Options{ServerName: tt.option}, tt.host).ServerName; got != tt.want {
			t.Errorf("ServerName %q, host %q: got %q, want %q", tt.option, tt.host, got, tt.want)
		}
	}
}

func TestVersionRange(t *testing.T) {
	tests := []struct {
		min, max uint16
		want     string
	}{
		{tls.VersionTLS13, tls.VersionTLS12, "--tls-min 1.3 is above --tls-max 1.2: swap them"},
		{0, tls.VersionTLS11, "--tls-max 1.1 is below the default minimum, 1.2: give --tls-min too"},
		{tls.VersionTLS10, tls.VersionTLS11, ""},
	}
	for _, tt := range tests {
		_, err := Options{MinVersion: tt.min, MaxVersion: tt.max}.ClientConfig("h")
		if got := asFlags(err); got != tt.want {
			t.Errorf("%x to %x: %q, want %q", tt.min, tt.max, got, tt.want)
		}
	}
}

func TestGiven(t *testing.T) {
	if (Options{}).Given() {
		t.Error("nothing given, and yet")
	}
	for _, o := range []Options{
		{CAFiles: []string{"x"}}, {CAPath: "x"}, {CertFile: "x"}, {KeyFile: "x"}, {KeyPasswordFile: "x"}, {ServerName: "x"},
		{ALPN: []string{"x"}}, {MinVersion: 1}, {MaxVersion: 1}, {Curves: []tls.CurveID{1}}, {Insecure: true},
		{CAPEM: []byte{1}}, {CertPEM: []byte{1}},
	} {
		if !o.Given() {
			t.Errorf("%+v is given", o)
		}
	}
}

func TestNames(t *testing.T) {
	for s, want := range map[string]uint16{"1.2": tls.VersionTLS12, "TLS 1.3": tls.VersionTLS13, "tlsv1.1": tls.VersionTLS11, "TLS1.0": tls.VersionTLS10} {
		if got, err := ParseVersion(s); err != nil || got != want {
			t.Errorf("ParseVersion(%q) = %x, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "1", "1.4", "ssl3", "tls"} {
		if _, err := ParseVersion(s); err == nil || !strings.Contains(err.Error(), "give 1.2 or 1.3") {
			t.Errorf("ParseVersion(%q): %v", s, err)
		}
	}
	for _, c := range curves {
		if got, err := ParseCurve(strings.ToLower(c.name)); err != nil || got != c.id || CurveName(got) != c.name {
			t.Errorf("ParseCurve(%q) = %v, %v", c.name, got, err)
		}
	}
	for _, s := range []string{"CurveP256", "secp256r1", "prime256v1"} {
		if got, err := ParseCurve(s); err != nil || got != tls.CurveP256 {
			t.Errorf("ParseCurve(%q) = %v, %v", s, got, err)
		}
	}
	if _, err := ParseCurve("P-224"); err == nil || !strings.Contains(err.Error(), `unknown curve "P-224": choose from X25519MLKEM768`) {
		t.Errorf("ParseCurve: %v", err)
	}
}

func TestThrowAway(t *testing.T) {
	now := time.Now()
	b, err := ThrowAway([]string{"broker.test", "localhost", "10.0.0.1", "::1"}, now)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(b.serverSANs, " "); got != "localhost broker.test 127.0.0.1 ::1 10.0.0.1" {
		t.Errorf("hosts %q", got)
	}
	leaf := b.server.Leaf
	if life := leaf.NotAfter.Sub(leaf.NotBefore); life > 30*24*time.Hour || !leaf.NotAfter.After(now) || !leaf.NotBefore.Before(now) {
		t.Errorf("lifetime %v from %v", life, leaf.NotBefore)
	}
	if leaf.PublicKeyAlgorithm != x509.ECDSA || leaf.IsCA {
		t.Errorf("server certificate: %v, CA %v", leaf.PublicKeyAlgorithm, leaf.IsCA)
	}
	for _, host := range append(slices.Clone(b.serverSANs), "[::1]") {
		for _, server := range []*tls.Config{b.ServerConfig(), b.MutualServerConfig()} {
			if _, err := handshake(t, clientConfig(t, b.ClientOptions(), host), server); err != nil {
				t.Errorf("%s: %v", host, err)
			}
		}
	}
	_, err = handshake(t, clientConfig(t, Options{CAPEM: b.CAPEM()}, "localhost"), b.MutualServerConfig())
	if got := Explain(err, asFlag); got != "server requires a client certificate: give --cert and --key" {
		t.Errorf("without client certificate: %q", got)
	}
	if _, err := ThrowAway([]string{""}, now); err == nil {
		t.Error("an empty host was taken")
	}
}

func TestWriteDir(t *testing.T) {
	b, err := ThrowAway(nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "new")
	if err := b.WriteDir(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"server.key", "client.key"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
	o := Options{CAFiles: []string{dir + "/ca.pem"}, CertFile: dir + "/client.pem", KeyFile: dir + "/client.key"}
	if _, err := handshake(t, clientConfig(t, o, "localhost"), b.MutualServerConfig()); err != nil {
		t.Error(err)
	}
	server, err := tls.LoadX509KeyPair(dir+"/server.pem", dir+"/server.key")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := handshake(t, clientConfig(t, o, "localhost"), serverConfig(server)); err != nil {
		t.Error(err)
	}
	if err := b.WriteDir(dir); err == nil || !strings.Contains(err.Error(), "ca.pem: file exists: choose an empty directory") {
		t.Errorf("second time: %v", err)
	}
}

// A file in the way leaves the directory as it was.
func TestWriteDirLeavesNothing(t *testing.T) {
	b, err := ThrowAway(nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, dir, "client.key", []byte("mine"))
	if err := b.WriteDir(dir); err == nil {
		t.Fatal("written over client.key")
	}
	entries, _ := os.ReadDir(dir)
	data, _ := os.ReadFile(filepath.Join(dir, "client.key"))
	if len(entries) != 1 || string(data) != "mine" {
		t.Errorf("left %v, client.key %q", entries, data)
	}
}
