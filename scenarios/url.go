package scenarios

// URL is the address of a broker.
type URL struct {
	// Scheme is "mqtt" or "mqtts", whichever spelling was written.
	Scheme string
	// Host is a DNS name or an IP address without brackets; an IPv6 zone stays.
	Host string
	Port int
	// HasPort says that the port was written and is not the scheme's default.
	HasPort bool
	Path    string
	// Username and Password are percent-decoded. String never shows them.
	Username    string
	HasUsername bool
	Password    string
	HasPassword bool
}
