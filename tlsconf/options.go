// Package tlsconf makes a *tls.Config of a user's options, explains handshake errors in
// one line, and makes temporary certificates. It opens no connections and knows no
// flags: its errors name a [Field].
package tlsconf

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/netip"
	"strings"
)

// Options are the choices of a TLS client. The zero value verifies the server against
// the system's roots and accepts TLS 1.2 and later.
type Options struct {
	// CAFiles are files of CA certificates, PEM or DER; CAPath is a directory
	// of such files. When any CA is given the system's roots are not used.
	CAFiles []string
	CAPath  string
	// CertFile holds the client certificate and its chain, leaf first. KeyFile
	// holds its private key and may be empty when CertFile holds both.
	CertFile string
	KeyFile  string
	// KeyPasswordFile holds, in its first line, the password of an encrypted
	// PKCS#8 key.
	KeyPasswordFile string
	// ServerName is sent as SNI and verified; empty means the host dialled.
	ServerName string
	// ALPN lists the protocols offered, in order of preference. [RFC 7301]
	ALPN []string
	// MinVersion and MaxVersion are tls.VersionTLS10 and so on; 0 means TLS 1.2
	// and the newest known.
	MinVersion, MaxVersion uint16
	// Curves are the key exchanges offered; empty means Go's choice.
	Curves []tls.CurveID
	// Insecure skips the verification of the server's certificate.
	Insecure bool
	// Resume keeps sessions, so that connections of one ClientConfig after the
	// first to a server need no full handshake where it lets them.
	Resume bool

	// CAPEM, CertPEM and KeyPEM are the same in memory, for the embedded
	// broker's throw-away certificates. CAPEM is added to the CA files;
	// CertPEM and KeyPEM are used when CertFile and KeyFile are empty.
	CAPEM, CertPEM, KeyPEM []byte
}

// Given reports whether any option is set that implies the use of TLS.
func (o Options) Given() bool {
	return len(o.CAFiles)+len(o.ALPN)+len(o.Curves) > 0 || len(o.CAPEM)+len(o.CertPEM) > 0 ||
		o.CAPath+o.CertFile+o.KeyFile+o.KeyPasswordFile+o.ServerName != "" ||
		o.MinVersion|o.MaxVersion != 0 || o.Insecure
}

// ClientConfig returns the configuration for a connection to host, a DNS name
// or an IP address without port (a zone is dropped). A fault is a
// *[FieldError]; several faults are joined as [errors.Join] does.
func (o Options) ClientConfig(host string) (*tls.Config, error) {
	if o.MinVersion != 0 && o.MaxVersion != 0 && o.MinVersion > o.MaxVersion {
		low, high := versionName(o.MinVersion), versionName(o.MaxVersion)
		return nil, fault(MinVersion, low, "%s is above %s %s: swap them", low, MaxVersion, high)
	}
	roots, rootsErr := o.roots()
	certs, certsErr := o.certificates()
	if err := errors.Join(rootsErr, certsErr); err != nil {
		return nil, err
	}
	c := &tls.Config{
		RootCAs:            roots,
		Certificates:       certs,
		ServerName:         o.serverName(host),
		NextProtos:         o.ALPN,
		MinVersion:         tls.VersionTLS12,
		MaxVersion:         o.MaxVersion,
		CurvePreferences:   o.Curves,
		InsecureSkipVerify: o.Insecure,
		// Records that grow with the connection's age would make a young
		// connection's throughput differ from an old one's.
		DynamicRecordSizingDisabled: true,
	}
	if o.Resume {
		c.ClientSessionCache = tls.NewLRUClientSessionCache(0) // of as many servers as the default holds
	}
	if o.MinVersion != 0 {
		c.MinVersion = o.MinVersion
	} else if o.MaxVersion != 0 && o.MaxVersion < c.MinVersion {
		high := versionName(o.MaxVersion)
		return nil, fault(MaxVersion, high, "%s is below the default minimum, 1.2: give %s too", high, MinVersion)
	}
	return c, nil
}

// serverName is the name to verify, without the zone of an IPv6 address: certificates
// have no zones.
func (o Options) serverName(host string) string {
	if o.ServerName != "" {
		return o.ServerName
	}
	bare := strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if ip, err := netip.ParseAddr(bare); err == nil {
		return ip.WithZone("").String()
	}
	return host
}

// roots returns nil, the system's roots, when no CA is given.
func (o Options) roots() (*x509.CertPool, error) {
	if len(o.CAFiles) == 0 && o.CAPath == "" && len(o.CAPEM) == 0 {
		return nil, nil
	}
	pool := x509.NewCertPool()
	var bad []error
	add := func(certs []*x509.Certificate, err error) {
		bad = append(bad, err)
		for _, c := range certs {
			pool.AddCert(c)
		}
	}
	for _, path := range o.CAFiles {
		add(readCertificates(CAFile, path))
	}
	if o.CAPath != "" {
		add(readCertificateDir(CAPath, o.CAPath))
	}
	if len(o.CAPEM) > 0 {
		add(parseCertificates(CAFile, "in memory", o.CAPEM))
	}
	return pool, errors.Join(bad...)
}

// certificates returns the client's certificate, or none.
func (o Options) certificates() ([]tls.Certificate, error) {
	if o.CertFile+o.KeyFile == "" && len(o.CertPEM) == 0 {
		return nil, nil
	}
	var cert tls.Certificate
	var err error
	if o.CertFile+o.KeyFile != "" {
		cert, err = o.KeyPair(o.CertFile, o.KeyFile)
	} else {
		cert, err = tls.X509KeyPair(o.CertPEM, o.KeyPEM)
	}
	if err != nil {
		return nil, err
	}
	return []tls.Certificate{cert}, nil
}

// KeyPair reads a certificate with its chain, and its key with the password of the
// options if the key is encrypted. keyFile may be "" if certFile holds both. A fault
// is a *[FieldError] of [Cert], [Key] or [KeyPasswordFile]; several are joined.
func (o Options) KeyPair(certFile, keyFile string) (tls.Certificate, error) {
	if certFile == "" {
		return tls.Certificate{}, fault(Key, keyFile, "%s without a certificate: give %s too", keyFile, Cert)
	}
	return readKeyPair(certFile, keyFile, o.KeyPasswordFile)
}
