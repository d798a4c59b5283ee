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

// Explain returns the cause of a TLS fault in one line with a remedy where
// there is one; "" for nil. It knows the errors of crypto/tls and crypto/x509,
// of the handshake and of the first read after it: with TLS 1.3 a server that
// refuses the client's certificate says so only then. What it does not know it
// returns as it is, in one line.
func Explain(err error) string {
	if err == nil {
		return ""
	}
	for _, explain := range []func(error) string{explainRecord, explainCertificate, explainAlert, explainEnd} {
		if s := explain(err); s != "" {
			return s
		}
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}

func explainRecord(err error) string {
	var header tls.RecordHeaderError
	if errors.As(err, &header) && strings.Contains(header.Msg, "does not look like a TLS handshake") {
		return "first record does not look like a TLS handshake: this port speaks without TLS; " +
			"remove --tls, or use the broker's TLS port (usually 8883)"
	}
	return ""
}

// explainCertificate explains why the server's certificate was not accepted here.
func explainCertificate(err error) string {
	var invalid x509.CertificateInvalidError
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var system x509.SystemRootsError
	switch {
	case errors.As(err, &invalid):
		return explainInvalid(err, invalid)
	case errors.As(err, &unknown):
		return explainAuthority(err, unknown)
	case errors.As(err, &host):
		return explainHost(host)
	case errors.As(err, &system):
		return "this system has no root certificates: give the server's CA with --cafile"
	}
	return ""
}

func explainInvalid(err error, invalid x509.CertificateInvalidError) string {
	who := "server certificate"
	var verify *tls.CertificateVerificationError
	if errors.As(err, &verify) && len(verify.UnverifiedCertificates) > 0 &&
		!verify.UnverifiedCertificates[0].Equal(invalid.Cert) {
		who = "CA certificate " + nameOf(invalid.Cert)
	}
	switch {
	// The reason is Expired in both cases; only the detail tells them apart.
	case invalid.Reason == x509.Expired && strings.Contains(invalid.Detail, "is before"):
		return fmt.Sprintf("%s not valid before %s: check this machine's clock", who, date(invalid.Cert.NotBefore))
	case invalid.Reason == x509.Expired:
		return fmt.Sprintf("%s expired %s: renew it, or check this machine's clock", who, date(invalid.Cert.NotAfter))
	case invalid.Reason == x509.IncompatibleUsage:
		return who + " is not made for servers: it needs the extended key usage serverAuth"
	case invalid.Reason == x509.NotAuthorizedToSign:
		return who + " is signed by a certificate that is no CA: give the CA's own certificate with --cafile"
	}
	return who + " is not valid: " + strings.TrimPrefix(invalid.Error(), "x509: ")
}

func date(t time.Time) string { return t.UTC().Format(time.DateOnly) }

func explainAuthority(err error, unknown x509.UnknownAuthorityError) string {
	c := unknown.Cert
	var verify *tls.CertificateVerificationError
	chain := errors.As(err, &verify) && len(verify.UnverifiedCertificates) > 1
	switch {
	case c == nil:
		return "server certificate is signed by an unknown authority: give its CA with --cafile"
	case strings.Contains(err.Error(), "candidate authority"):
		return fmt.Sprintf("server certificate is signed by a CA with the name %q but another key than the one trusted: "+
			"give the right CA with --cafile", c.Issuer.CommonName)
	// Of a server that sends its chain, crypto/x509 names the certificate at
	// the top, which is not the server's.
	case chain && !verify.UnverifiedCertificates[0].Equal(c):
		return fmt.Sprintf("server certificate %s is signed by an unknown authority (%q): give its CA with --cafile",
			nameOf(verify.UnverifiedCertificates[0]), issuerOf(c))
	case c.Issuer.String() == c.Subject.String():
		return fmt.Sprintf("server certificate %s is self-signed by an unknown authority: give it with --cafile to trust it", nameOf(c))
	}
	return fmt.Sprintf("server certificate is signed by an unknown authority (%q): give its CA with --cafile", issuerOf(c))
}

func issuerOf(c *x509.Certificate) string {
	if c.Issuer.CommonName != "" {
		return c.Issuer.CommonName
	}
	return c.Issuer.String()
}

func explainHost(e x509.HostnameError) string {
	names := sans(e.Certificate)
	if len(names) == 0 {
		// RFC 9525 section 2: the common name is not to be consulted.
		return fmt.Sprintf("server certificate has no SAN for %q, only the common name %q, which is not read: "+
			"make it anew with subjectAltName=%s", e.Host, e.Certificate.Subject.CommonName, sanFor(e.Host))
	}
	const most = 8
	more := ""
	if len(names) > most {
		more = fmt.Sprintf(" and %d more", len(names)-most)
		names = names[:most]
	}
	return fmt.Sprintf("server certificate is for %s%s, not for %q: connect by one of its names, or give it with --servername",
		strings.Join(quoteOdd(names), ", "), more, e.Host)
}

func sanFor(host string) string {
	if isIP(host) {
		return "IP:" + host
	}
	return "DNS:" + host
}

// quoteOdd quotes names that would not print as they are: they come from the peer.
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

// alerts are crypto/tls's texts, which have no exported types: first what the
// peer says ("remote error: "), then what this side found.
var alerts = []struct{ text, cause string }{
	{"remote error: tls: certificate required", "server requires a client certificate: give --cert and --key"},
	{"remote error: tls: bad certificate", "server refused the client certificate, or requires one: give --cert and --key of a CA it trusts"},
	{"remote error: tls: unknown certificate authority", "server does not know the CA of the client certificate: give one it trusts with --cert and --key"},
	{"remote error: tls: unknown certificate", "server refused the client certificate: give one it accepts with --cert and --key"},
	{"remote error: tls: unsupported certificate", "server does not take this kind of client certificate: it needs the extended key usage clientAuth and a key the server knows"},
	{"remote error: tls: access denied", "server refused the client certificate's owner: give another with --cert and --key"},
	{"remote error: tls: expired certificate", "server says the client certificate is expired: renew the one of --cert"},
	{"remote error: tls: revoked certificate", "server says the client certificate is revoked: give another with --cert and --key"},
	{"remote error: tls: protocol version not supported", "server speaks none of the TLS versions offered: widen --tls-min and --tls-max"},
	{"server selected unsupported protocol version 301", "server offers TLS 1.0 only, below the minimum: update it, or give --tls-min 1.0"},
	{"server selected unsupported protocol version 302", "server offers TLS 1.1 only, below the minimum: update it, or give --tls-min 1.1"},
	{"server selected unsupported protocol version", "server offers none of the TLS versions asked for: widen --tls-min and --tls-max"},
	{"tls: no application protocol", "server speaks none of the ALPN protocols offered: change or remove --alpn"},
	{"server selected unadvertised ALPN protocol", "server chose an ALPN protocol that was not offered: change --alpn"},
	{"remote error: tls: unrecognized name", "server does not know the name asked for: give the right one with --servername"},
	{"remote error: tls: handshake failure", "server refused the handshake: it requires a client certificate (--cert and --key), or shares no cipher or curve (--curves, --tls-min, --tls-max)"},
	{"server selected unsupported curve", "server chose a key exchange that was not offered: check --curves"},
}

func explainAlert(err error) string {
	text := err.Error()
	for _, a := range alerts {
		if strings.Contains(text, a.text) {
			return a.cause
		}
	}
	return ""
}

func explainEnd(err error) string {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return "no answer to the TLS handshake in time: does this port speak TLS?"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE):
		return "server closed the connection during the TLS handshake: does this port speak TLS? if not, remove --tls"
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
