package tlsconf

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
)

var versions = []struct {
	name string
	id   uint16
}{{"1.0", tls.VersionTLS10}, {"1.1", tls.VersionTLS11}, {"1.2", tls.VersionTLS12}, {"1.3", tls.VersionTLS13}}

// curves are the key exchanges of crypto/tls with their IANA names.
var curves = []struct {
	name string
	id   tls.CurveID
}{
	{"X25519MLKEM768", tls.X25519MLKEM768},
	{"SecP256r1MLKEM768", tls.SecP256r1MLKEM768},
	{"SecP384r1MLKEM1024", tls.SecP384r1MLKEM1024},
	{"X25519", tls.X25519},
	{"P-256", tls.CurveP256},
	{"P-384", tls.CurveP384},
	{"P-521", tls.CurveP521},
}

// ParseVersion reads "1.0" to "1.3", also as "TLS 1.2", "tlsv1.2" or "tls1.2".
func ParseVersion(s string) (uint16, error) {
	bare := strings.TrimPrefix(strings.TrimPrefix(strings.ToLower(strings.ReplaceAll(s, " ", "")), "tls"), "v")
	for _, v := range versions {
		if bare == v.name {
			return v.id, nil
		}
	}
	return 0, fmt.Errorf("unknown TLS version %q: give 1.2 or 1.3 (1.0 and 1.1 only for old servers)", s)
}

// ParseCurve reads the name of a key exchange: X25519MLKEM768, X25519, P-256
// (also CurveP256, secp256r1 and prime256v1), P-384, P-521. Case does not matter.
func ParseCurve(s string) (tls.CurveID, error) {
	alias := map[string]string{
		"curvep256": "p-256", "p256": "p-256", "secp256r1": "p-256", "prime256v1": "p-256",
		"curvep384": "p-384", "p384": "p-384", "secp384r1": "p-384",
		"curvep521": "p-521", "p521": "p-521", "secp521r1": "p-521",
	}
	name := strings.ToLower(s)
	if full, ok := alias[name]; ok {
		name = full
	}
	for _, c := range curves {
		if name == strings.ToLower(c.name) {
			return c.id, nil
		}
	}
	return 0, fmt.Errorf("unknown curve %q: choose from %s", s, strings.Join(curveNames(), ", "))
}

// versionName returns the version as [ParseVersion] reads it, "1.2".
func versionName(id uint16) string { return strings.TrimPrefix(tls.VersionName(id), "TLS ") }

// CurveName returns a name that [ParseCurve] reads.
func CurveName(id tls.CurveID) string {
	for _, c := range curves {
		if c.id == id {
			return c.name
		}
	}
	return id.String()
}

func curveNames() []string {
	var names []string
	for _, c := range curves {
		names = append(names, c.name)
	}
	return slices.Clip(names)
}

// State returns what a handshake agreed on: version ("TLS 1.3"), cipher suite (the
// IANA name, "TLS_AES_128_GCM_SHA256"), key exchange ("X25519MLKEM768", or "" with
// RSA key transport), and whether it resumed a session.
func State(cs tls.ConnectionState) (version, cipher, curve string, resumed bool) {
	if cs.Version != 0 {
		version = tls.VersionName(cs.Version)
	}
	if cs.CipherSuite != 0 {
		cipher = tls.CipherSuiteName(cs.CipherSuite)
	}
	if cs.CurveID != 0 {
		curve = cs.CurveID.String()
	}
	return version, cipher, curve, cs.DidResume
}
