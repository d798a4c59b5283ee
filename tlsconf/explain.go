package tlsconf

import "crypto/x509"

// sans lists the subject alternative names of a certificate: DNS names, then IP addresses.
func sans(c *x509.Certificate) []string {
	names := append([]string(nil), c.DNSNames...)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}
