package tlsconf

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// lifetime is how long throw-away certificates are valid. Their validity begins
// backdate before now, because the clocks of client and server may differ a little.
const (
	lifetime = 30 * 24 * time.Hour
	backdate = time.Hour
)

// Bundle is a throw-away CA with one server and one client certificate, all
// ECDSA P-256. The CA's key is discarded after signing both.
type Bundle struct {
	caPEM      []byte
	server     tls.Certificate
	client     tls.Certificate
	serverPEM  [2][]byte // certificate, key
	clientPEM  [2][]byte
	serverSANs []string
}

// ThrowAway makes a bundle that is valid for 30 days, from an hour before now. The
// server certificate is for localhost, 127.0.0.1, ::1 and the given hosts, which are
// DNS names or IP addresses.
func ThrowAway(hosts []string, now time.Time) (*Bundle, error) {
	ca, caKey, err := authority(now)
	if err != nil {
		return nil, err
	}
	b := &Bundle{caPEM: certPEM(ca.Raw)}
	template := leafTemplate("mqttload throw-away server", now, x509.ExtKeyUsageServerAuth)
	for _, h := range append([]string{"localhost", "127.0.0.1", "::1"}, hosts...) {
		if err := addSAN(template, h); err != nil {
			return nil, err
		}
	}
	b.serverSANs = sans(template)
	if b.serverPEM, err = sign(template, ca, caKey); err != nil {
		return nil, err
	}
	template = leafTemplate("mqttload throw-away client", now, x509.ExtKeyUsageClientAuth)
	if b.clientPEM, err = sign(template, ca, caKey); err != nil {
		return nil, err
	}
	if b.server, err = tls.X509KeyPair(b.serverPEM[0], b.serverPEM[1]); err != nil {
		return nil, err
	}
	b.client, err = tls.X509KeyPair(b.clientPEM[0], b.clientPEM[1])
	return b, err
}

func authority(now time.Time) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial(),
		Subject:               pkix.Name{CommonName: "mqttload throw-away CA"},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(lifetime - backdate),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return cert, key, err
}

func leafTemplate(name string, now time.Time, usage x509.ExtKeyUsage) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber:          serial(),
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(lifetime - backdate),
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{usage},
	}
}

// serial returns 127 random bits: positive and at most 20 octets. [RFC 5280 4.1.2.2]
func serial() *big.Int {
	var b [16]byte
	_, _ = rand.Read(b[:]) // cannot fail: it would end the program
	b[0] &= 0x7f
	return new(big.Int).SetBytes(b[:])
}

func addSAN(c *x509.Certificate, host string) error {
	if ip, err := netip.ParseAddr(host); err == nil {
		std := ip.WithZone("").AsSlice()
		if !slices.ContainsFunc(c.IPAddresses, func(have net.IP) bool { return slices.Equal(have, std) }) {
			c.IPAddresses = append(c.IPAddresses, std)
		}
		return nil
	}
	if host == "" || len(host) > 253 {
		return fmt.Errorf("certificate for host %q: give a DNS name or an IP address", host)
	}
	if !slices.Contains(c.DNSNames, host) {
		c.DNSNames = append(c.DNSNames, host)
	}
	return nil
}

func isIP(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// sign makes a key for template and returns certificate and key as PEM.
func sign(template, ca *x509.Certificate, caKey *ecdsa.PrivateKey) (pair [2][]byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca, key.Public(), caKey)
	if err != nil {
		return pair, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return pair, err
	}
	return [2][]byte{certPEM(der), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})}, nil
}

func certPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// ServerConfig returns the server's configuration: TLS 1.2 and later, no request
// for a client certificate, any ALPN.
func (b *Bundle) ServerConfig() *tls.Config {
	return &tls.Config{
		Certificates:                []tls.Certificate{b.server},
		MinVersion:                  tls.VersionTLS12,
		DynamicRecordSizingDisabled: true,
	}
}

// MutualServerConfig is [Bundle.ServerConfig], but requires a client certificate of
// the bundle's CA.
func (b *Bundle) MutualServerConfig() *tls.Config {
	c := b.ServerConfig()
	c.ClientAuth = tls.RequireAndVerifyClientCert
	c.ClientCAs = x509.NewCertPool()
	c.ClientCAs.AppendCertsFromPEM(b.caPEM)
	return c
}

// CAPEM returns the CA's certificate.
func (b *Bundle) CAPEM() []byte { return slices.Clone(b.caPEM) }

// ClientOptions returns options that trust only the bundle's CA and hold the client
// certificate. A client sends it only to servers that request one.
func (b *Bundle) ClientOptions() Options {
	return Options{CAPEM: b.CAPEM(), CertPEM: slices.Clone(b.clientPEM[0]), KeyPEM: slices.Clone(b.clientPEM[1])}
}

// WriteDir writes ca.pem, server.pem, server.key, client.pem and client.key to
// dir, which it creates if necessary. Keys have mode 0600. It overwrites nothing: if
// one of the files exists, it writes none.
func (b *Bundle) WriteDir(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write certificates: %w", err)
	}
	files := []struct {
		name string
		mode os.FileMode
		data []byte
	}{
		{"ca.pem", 0o644, b.caPEM},
		{"server.pem", 0o644, b.serverPEM[0]},
		{"server.key", 0o600, b.serverPEM[1]},
		{"client.pem", 0o644, b.clientPEM[0]},
		{"client.key", 0o600, b.clientPEM[1]},
	}
	var written []string
	for _, f := range files {
		path := filepath.Join(dir, f.name)
		if err := writeNew(path, f.data, f.mode); err != nil {
			for _, w := range written {
				_ = os.Remove(w)
			}
			return fmt.Errorf("write certificates: %w: choose an empty directory", err)
		}
		written = append(written, path)
	}
	return nil
}

// writeNew writes a file that does not exist yet. If it fails, it removes the file.
func writeNew(path string, data []byte, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		_ = os.Remove(path)
	}
	return err
}
