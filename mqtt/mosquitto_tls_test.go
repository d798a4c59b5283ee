package mqtt

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mqttload/mqttload/mqtt/packet"
	"github.com/mqttload/mqttload/tlsconf"
)

// throwAway makes a CA with certificates for localhost and 127.0.0.1.
func throwAway(t *testing.T) *tlsconf.Bundle {
	t.Helper()
	b, err := tlsconf.ThrowAway(nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// runTLS runs a test over TLS connections that are dialled as host.
func (test mosquittoTest) runTLS(t *testing.T, server *tls.Config, o tlsconf.Options, host string) {
	conf, err := o.ClientConfig(host)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conns := make(chan net.Conn, 1)
	go func() {
		if nc, err := l.Accept(); err == nil {
			conns <- nc
		}
	}()
	test.runOver(t, conns, dialTLS(l.Addr().String(), conf))
}

func dialTLS(addr string, conf *tls.Config) Dialer {
	return func(ctx context.Context) (net.Conn, error) {
		nc, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err != nil {
			return nil, err
		}
		c := tls.Client(NonBlocking(nc), conf)
		if err := c.HandshakeContext(ctx); err != nil {
			_ = nc.Close()
			return nil, err
		}
		return c, nil
	}
}

// TestMosquittoTLS is test/lib/08-ssl-connect-*.py: CONNECT and DISCONNECT over
// TLS, with and without a client's certificate, by name and by address.
func TestMosquittoTLS(t *testing.T) {
	bundle := throwAway(t)
	trusting := tlsconf.Options{CAPEM: bundle.CAPEM()}
	for _, tt := range []struct {
		name, host string
		server     *tls.Config
		options    tlsconf.Options
	}{
		{"08-ssl-connect-no-auth", "localhost", bundle.ServerConfig(), trusting},
		{"08-ssl-connect-cert-auth", "localhost", bundle.MutualServerConfig(), bundle.ClientOptions()},
		{"08-ssl-connect-san", "localhost", bundle.ServerConfig(), trusting},
		{"08-ssl-connect-san", "127.0.0.1", bundle.ServerConfig(), trusting},
	} {
		t.Run(tt.name+"/"+tt.host, func(t *testing.T) {
			mosquittoTest{id: tt.name, act: comeAndGo, script: `
				< CONNECT
				> CONNACK
				< e0 00
				end`}.runTLS(t, tt.server, tt.options, tt.host)
		})
	}
}

// TestMosquittoEncryptedKey is test/lib/08-ssl-connect-cert-auth-enc.py: the key
// of the client's certificate is encrypted, and its password is in a file.
func TestMosquittoEncryptedKey(t *testing.T) {
	dir := t.TempDir()
	password := filepath.Join(dir, "password")
	if err := os.WriteFile(password, []byte("known\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join("..", "tlsconf", "testdata", "aes256-sha256.key")
	cert := filepath.Join(dir, "client.pem")
	certificate, pool := selfSigned(t, filepath.Join("..", "tlsconf", "testdata", "plain.key"))
	if err := os.WriteFile(cert, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	bundle := throwAway(t)
	server := bundle.ServerConfig()
	server.ClientAuth, server.ClientCAs = tls.RequireAndVerifyClientCert, pool
	o := tlsconf.Options{CAPEM: bundle.CAPEM(), CertFile: cert, KeyFile: key, KeyPasswordFile: password}
	mosquittoTest{id: "08-ssl-connect-crt-auth-enc", act: comeAndGo, script: `
		< CONNECT
		> CONNACK
		< e0 00
		end`}.runTLS(t, server, o, "localhost")
}

// TestMosquittoForeignCA is test/lib/08-ssl-fake-cacert.py: the client sends no CONNECT
// to a server with a certificate of another CA.
func TestMosquittoForeignCA(t *testing.T) {
	conf, err := tlsconf.Options{CAPEM: throwAway(t).CAPEM()}.ClientConfig("localhost")
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", throwAway(t).ServerConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	read := make(chan int, 1)
	go func() {
		nc, err := l.Accept()
		if err != nil {
			read <- -1
			return
		}
		defer nc.Close()
		n, _ := nc.Read(make([]byte, 100))
		read <- n
	}()
	_, err = Connect(t.Context(), Config{Dial: dialTLS(l.Addr().String(), conf), Version: packet.V311, ClientID: "08-ssl-fake-cacert", CleanStart: true})
	var unknown x509.UnknownAuthorityError
	if !errors.As(err, &unknown) {
		t.Fatalf("got %v, want an unknown authority", err)
	}
	if n := <-read; n != 0 {
		t.Errorf("the server has read %d bytes", n)
	}
}

// TestMosquittoBadCA is test/lib/08-ssl-bad-cacert.py: a missing CA file is an error
// before anything is dialled.
func TestMosquittoBadCA(t *testing.T) {
	_, err := tlsconf.Options{CAFiles: []string{"this/file/doesnt/exist"}}.ClientConfig("localhost")
	var file *tlsconf.FieldError
	if !errors.As(err, &file) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want a fault of the file", err)
	}
}

// selfSigned returns a certificate, in PEM, for the key in file, and a pool
// that trusts it.
func selfSigned(t *testing.T, file string) ([]byte, *x509.CertPool) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(data)
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.(crypto.Signer).Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pool
}
