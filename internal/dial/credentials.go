package dial

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"

	"github.com/mqttload/mqttload/mqtt"
	"github.com/mqttload/mqttload/scenarios"
)

// Credentials are the rows of a credentials file, one for each client.
type Credentials []Identity

// Identity is the row of one client.
type Identity struct{ scenarios.Credential }

// ReadCredentials returns the first n rows of a credentials file. Fewer rows are an
// error.
func ReadCredentials(path string, n int) (Credentials, error) {
	file, err := scenarios.OpenCredentials(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	rows := make(Credentials, 0, n)
	for len(rows) < n {
		row, err := file.Next()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("credentials file %s has %d rows for %d clients: add rows, or ask for fewer clients", path, len(rows), n)
		}
		if err != nil {
			return nil, err
		}
		rows = append(rows, Identity{row})
	}
	return rows, nil
}

// Fill sets the user name and the password of a CONNECT, if the row has them. The
// caller sets the client id.
func (c *Identity) Fill(cfg *mqtt.Config) {
	if c.HasUser {
		cfg.HasUsername, cfg.Username = true, c.User
	}
	if c.HasPassword {
		cfg.HasPassword, cfg.Password = true, []byte(c.Password)
	}
}

// Assume makes d the dialer of the client of a row.
func (d *Dialer) Assume(id *Identity) error {
	d.identity = id
	return id.identify(d)
}

// identify gives the connection the client certificate of the row, if it has one.
// The connection then does not resume TLS sessions: the ticket of another client
// would make this client that one.
func (c *Identity) identify(d *Dialer) error {
	if c.CertFile == "" || d.conf == nil {
		return nil
	}
	pair, err := d.routes.c.TLS.KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		return fmt.Errorf("credentials file %s: %w", d.routes.c.Clients.Credentials, err)
	}
	d.conf = d.conf.Clone()
	d.conf.Certificates, d.conf.GetClientCertificate, d.conf.ClientSessionCache = []tls.Certificate{pair}, nil, nil
	return nil
}
