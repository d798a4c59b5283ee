package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// conf is the command line of a child process, as key=value. The drivers in C and
// JavaScript read the same keys.
type conf struct {
	client  string // library
	work    string // publish, receive, pair, burst or connect
	addr    string // host:port of the other end
	ca      string // file with the certificate authority of a TLS server; "" means TCP
	qos     byte
	payload int // bytes
	window  int // messages outstanding
}

func (c *conf) args() []string {
	return []string{
		"client=" + c.client, "work=" + c.work, "addr=" + c.addr, "ca=" + c.ca,
		fmt.Sprint("qos=", c.qos), fmt.Sprint("payload=", c.payload), fmt.Sprint("window=", c.window),
	}
}

func parseConf(args []string) (c conf, err error) {
	for _, a := range args {
		key, value, _ := strings.Cut(a, "=")
		var n int
		switch key {
		case "client":
			c.client = value
		case "work":
			c.work = value
		case "addr":
			c.addr = value
		case "ca":
			c.ca = value
		case "qos":
			n, err = strconv.Atoi(value)
			c.qos = byte(n)
		case "payload":
			c.payload, err = strconv.Atoi(value)
		case "window":
			c.window, err = strconv.Atoi(value)
		default:
			err = fmt.Errorf("unknown setting %q: use client, work, addr, ca, qos, payload or window", a)
		}
		if err != nil {
			return c, err
		}
	}
	return c, nil
}

// tlsConfig trusts only the authority in c.ca. It is nil for TCP.
func (c *conf) tlsConfig() (*tls.Config, error) {
	if c.ca == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(c.ca)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", c.ca)
	}
	return &tls.Config{RootCAs: pool, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS13}, nil
}

// url is the address for libraries that take a URL.
func (c *conf) url() string {
	if c.ca != "" {
		return "tls://" + c.addr
	}
	return "tcp://" + c.addr
}

// topic is the topic of all works except floods.
const topic = "peers/t"

// keepAlive is the Keep Alive of every client, in seconds: too long for a PINGREQ
// during a measurement, but every client pays for the timer.
const keepAlive = 300
