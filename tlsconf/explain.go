package tlsconf

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
)

// Explain returns the cause of a TLS fault in one line, with a remedy if there is
// one; "" for nil. It knows the errors of crypto/tls and crypto/x509, in the handshake
// and in the first read after it: with TLS 1.3 a server rejects the client's
// certificate only then. It returns any other error unchanged, in one line. name
// returns what to call a field of a remedy.
func Explain(err error, name func(Field) string) string {
	if err == nil {
		return ""
	}
	for _, explain := range []func(error, func(Field) string) string{explainRecord, explainCertificate, explainAlert, explainEnd} {
		if s := explain(err, name); s != "" {
			return s
		}
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}

func explainRecord(err error, name func(Field) string) string {
	var header tls.RecordHeaderError
	if errors.As(err, &header) && strings.Contains(header.Msg, "does not look like a TLS handshake") {
		return "first record does not look like a TLS handshake: this port does not use TLS; " +
			"remove " + name(On) + ", or use the broker's TLS port (usually 8883)"
	}
	return ""
}

// explainCertificate explains why this side rejected the server's certificate.
func explainCertificate(err error, name func(Field) string) string {
	var invalid x509.CertificateInvalidError
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var system x509.SystemRootsError
	switch {
	case errors.As(err, &invalid):
		return explainInvalid(err, invalid, name)
	case errors.As(err, &unknown):
		return explainAuthority(err, unknown, name)
	case errors.As(err, &host):
		return explainHost(host, name)
	case errors.As(err, &system):
		return "this system has no root certificates: give the server's CA with " + name(CAFile)
	}
	return ""
}

func explainInvalid(err error, invalid x509.CertificateInvalidError, name func(Field) string) string {
	subject := "server certificate"
	var verify *tls.CertificateVerificationError
	if errors.As(err, &verify) && len(verify.UnverifiedCertificates) > 0 &&
		!verify.UnverifiedCertificates[0].Equal(invalid.Cert) {
		subject = "CA certificate " + nameOf(invalid.Cert)
	}
	switch {
	// The reason is Expired in both cases; only the detail tells them apart.
	case invalid.Reason == x509.Expired && strings.Contains(invalid.Detail, "is before"):
		return fmt.Sprintf("%s not valid before %s: check this machine's clock", subject, date(invalid.Cert.NotBefore))
	case invalid.Reason == x509.Expired:
		return fmt.Sprintf("%s expired %s: renew it, or check this machine's clock", subject, date(invalid.Cert.NotAfter))
	case invalid.Reason == x509.IncompatibleUsage:
		return subject + " is not made for servers: it needs the extended key usage serverAuth"
	case invalid.Reason == x509.NotAuthorizedToSign:
		return subject + " is signed by a certificate that is not a CA: give the CA's own certificate with " + name(CAFile)
	}
	return subject + " is not valid: " + strings.TrimPrefix(invalid.Error(), "x509: ")
}

func date(t time.Time) string { return t.UTC().Format(time.DateOnly) }

func explainAuthority(err error, unknown x509.UnknownAuthorityError, name func(Field) string) string {
	c := unknown.Cert
	var verify *tls.CertificateVerificationError
	chain := errors.As(err, &verify) && len(verify.UnverifiedCertificates) > 1
	switch {
	case c == nil:
		return "server certificate is signed by an unknown authority: give its CA with " + name(CAFile)
	case strings.Contains(err.Error(), "candidate authority"):
		return fmt.Sprintf("server certificate is signed by a CA with the name %q but another key than the one trusted: "+
			"give the right CA with %s", c.Issuer.CommonName, name(CAFile))
	// Of a server that sends its chain, crypto/x509 names the certificate at
	// the top, which is not the server's.
	case chain && !verify.UnverifiedCertificates[0].Equal(c):
		return fmt.Sprintf("server certificate %s is signed by an unknown authority (%q): give its CA with %s",
			nameOf(verify.UnverifiedCertificates[0]), issuerOf(c), name(CAFile))
	case c.Issuer.String() == c.Subject.String():
		return fmt.Sprintf("server certificate %s is self-signed by an unknown authority: give it with %s to trust it", nameOf(c), name(CAFile))
	}
	return fmt.Sprintf("server certificate is signed by an unknown authority (%q): give its CA with %s", issuerOf(c), name(CAFile))
}

func issuerOf(c *x509.Certificate) string {
	if c.Issuer.CommonName != "" {
		return c.Issuer.CommonName
	}
	return c.Issuer.String()
}

func explainHost(e x509.HostnameError, name func(Field) string) string {
	names := sans(e.Certificate)
	if len(names) == 0 {
		// RFC 9525 section 2: clients must not use the common name.
		return fmt.Sprintf("server certificate has no SAN for %q, only the common name %q, which is ignored: "+
			"reissue it with subjectAltName=%s", e.Host, e.Certificate.Subject.CommonName, sanFor(e.Host))
	}
	const most = 8
	more := ""
	if len(names) > most {
		more = fmt.Sprintf(" and %d more", len(names)-most)
		names = names[:most]
	}
	return fmt.Sprintf("server certificate is for %s%s, not for %q: connect by one of its names, or give it with %s",
		strings.Join(quoteOdd(names), ", "), more, e.Host, name(ServerName))
}

func sanFor(host string) string {
	if isIP(host) {
		return "IP:" + host
	}
	return "DNS:" + host
}

// quoteOdd quotes names with unprintable characters: the names come from the peer.
func quoteOdd(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = n
		if q := fmt.Sprintf("%q", n); q != `"`+n+`"` {
			out[i] = q
		}
	}
	return out
}

// alerts are texts of crypto/tls whose errors have no exported types: of alerts that
// the peer has sent ("remote error: "), and of faults that this side found.
var alerts = []struct {
	text, cause string
	fields      []any
}{
	{"remote error: tls: certificate required", "server requires a client certificate: give %s and %s", []any{Cert, Key}},
	{"remote error: tls: bad certificate", "server refused the client certificate, or requires one: give %s and %s of a CA it trusts", []any{Cert, Key}},
	{"remote error: tls: unknown certificate authority", "server does not know the CA of the client certificate: give one it trusts with %s and %s", []any{Cert, Key}},
	{"remote error: tls: unknown certificate", "server refused the client certificate: give one it accepts with %s and %s", []any{Cert, Key}},
	{"remote error: tls: unsupported certificate", "server does not accept this kind of client certificate: it needs the extended key usage clientAuth and a key type that the server supports", nil},
	{"remote error: tls: access denied", "server refused the client certificate's owner: give another with %s and %s", []any{Cert, Key}},
	{"remote error: tls: expired certificate", "server says the client certificate is expired: renew the one of %s", []any{Cert}},
	{"remote error: tls: revoked certificate", "server says the client certificate is revoked: give another with %s and %s", []any{Cert, Key}},
	{"remote error: tls: protocol version not supported", "server speaks none of the TLS versions offered: widen %s and %s", []any{MinVersion, MaxVersion}},
	{"server selected unsupported protocol version 301", "server offers TLS 1.0 only, below the minimum: update it, or give %s 1.0", []any{MinVersion}},
	{"server selected unsupported protocol version 302", "server offers TLS 1.1 only, below the minimum: update it, or give %s 1.1", []any{MinVersion}},
	{"server selected unsupported protocol version", "server offers none of the TLS versions asked for: widen %s and %s", []any{MinVersion, MaxVersion}},
	{"tls: no application protocol", "server speaks none of the ALPN protocols offered: change or remove %s", []any{ALPN}},
	{"server selected unadvertised ALPN protocol", "server chose an ALPN protocol that was not offered: change %s", []any{ALPN}},
	{"remote error: tls: unrecognized name", "server does not know the name asked for: give the right one with %s", []any{ServerName}},
	{"remote error: tls: handshake failure", "server refused the handshake: it requires a client certificate (%s and %s), or shares no cipher or curve (%s, %s, %s)", []any{Cert, Key, Curves, MinVersion, MaxVersion}},
	{"server selected unsupported curve", "server chose a key exchange that was not offered: check %s", []any{Curves}},
}

func explainAlert(err error, name func(Field) string) string {
	text := err.Error()
	for _, a := range alerts {
		if strings.Contains(text, a.text) {
			m := message{a.cause, a.fields}
			return m.text(name)
		}
	}
	return ""
}

func explainEnd(err error, name func(Field) string) string {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return "no answer to the TLS handshake in time: does this port speak TLS?"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE):
		return "server closed the connection during the TLS handshake: does this port speak TLS? if not, remove " + name(On)
	}
	return ""
}

// sans lists the subject alternative names of a certificate: DNS names, then IP addresses.
func sans(c *x509.Certificate) []string {
	names := append([]string(nil), c.DNSNames...)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}
