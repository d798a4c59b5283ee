package result

// Values of a case's parameter "transport".
const (
	TransportTCP = "tcp"
	TransportTLS = "tls"
)

// OverTLS reports whether the transport of that name encrypts with TLS.
func OverTLS(transport string) bool { return transport == TransportTLS }
