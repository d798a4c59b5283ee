package tlsconf

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mqttload/mqttload/internal/file"
)

// maxFile bounds what is read of one certificate or key file, in bytes.
const maxFile = 16 << 20

// readFile returns the file's bytes without a byte order mark.
func readFile(f Field, path string) ([]byte, error) {
	data, err := file.Read(path, maxFile)
	if err != nil {
		return nil, &FieldError{f, path, err}
	}
	return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), nil
}

// readCertificates returns the certificates of a PEM or DER file, at least one.
func readCertificates(f Field, path string) ([]*x509.Certificate, error) {
	data, err := readFile(f, path)
	if err != nil {
		return nil, err
	}
	return parseCertificates(f, path, data)
}

// readCertificateDir returns the certificates of all files in a directory. It ignores
// files without certificates, because a CA directory also holds CRLs and readmes, and
// it ignores pipes and devices.
func readCertificateDir(f Field, dir string) ([]*x509.Certificate, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, &FieldError{f, dir, file.Cause(err)}
	}
	var certs []*x509.Certificate
	for _, e := range entries {
		more, err := readCertificates(f, filepath.Join(dir, e.Name()))
		if err == nil {
			certs = append(certs, more...)
		}
	}
	if len(certs) == 0 {
		return nil, fault(f, dir, "no certificate found in any file of directory %s", dir)
	}
	return certs, nil
}

func parseCertificates(f Field, path string, data []byte) ([]*x509.Certificate, error) {
	var certs []*x509.Certificate
	var others []string
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" && block.Type != "TRUSTED CERTIFICATE" {
			others = append(others, block.Type)
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fault(f, path, "certificate %d of the file is damaged: %v", len(certs)+1, err)
		}
		certs = append(certs, c)
	}
	if len(certs) > 0 {
		return certs, nil
	}
	if c, err := x509.ParseCertificates(data); err == nil && len(c) > 0 {
		return c, nil
	}
	switch {
	case len(others) > 0:
		return nil, fault(f, path, "no certificate found in %s: it holds %s", path, strings.Join(others, ", "))
	case len(bytes.TrimSpace(data)) == 0:
		return nil, fault(f, path, "no certificate found in %s: the file is empty", path)
	}
	return nil, fault(f, path, "no certificate found in %s: it is neither PEM nor DER", path)
}

// readKeyPair reads a certificate chain and its key, which may be in the same file.
func readKeyPair(certFile, keyFile, passwordFile string) (tls.Certificate, error) {
	var pair tls.Certificate
	chain, chainErr := readCertificates(Cert, certFile)
	f, path := Key, keyFile
	if keyFile == "" {
		f, path = Cert, certFile
	}
	if chainErr != nil && keyFile == "" {
		return pair, chainErr // the key would have the same fault
	}
	key, keyErr := readKey(f, path, passwordFile)
	if err := errors.Join(chainErr, keyErr); err != nil {
		return pair, err
	}
	public, ok := chain[0].PublicKey.(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(key.Public()) {
		return pair, fault(f, path, "the key does not belong to the first certificate of %s %s (%s)",
			Cert, certFile, nameOf(chain[0]))
	}
	pair.PrivateKey, pair.Leaf = key, chain[0]
	for _, c := range chain {
		pair.Certificate = append(pair.Certificate, c.Raw)
	}
	return pair, nil
}

// readKey returns the first private key of a PEM or DER file: PKCS#8 (also
// encrypted), PKCS#1 or SEC 1, with or without an EC PARAMETERS block.
func readKey(f Field, path, passwordFile string) (crypto.Signer, error) {
	data, err := readFile(f, path)
	if err != nil {
		return nil, err
	}
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if !strings.HasSuffix(block.Type, "PRIVATE KEY") {
			continue
		}
		return keyOfBlock(f, path, passwordFile, block)
	}
	if key, err := parseKey(data); err == nil {
		return key, nil
	}
	if f == Cert {
		return nil, fault(f, path, "no private key found in %s: give %s", path, Key)
	}
	return nil, fault(f, path, "no private key found in %s", path)
}

func keyOfBlock(f Field, path, passwordFile string, block *pem.Block) (crypto.Signer, error) {
	der := block.Bytes
	if block.Headers["DEK-Info"] != "" {
		return nil, fault(f, path,
			"the key uses the old PEM encryption, which is not safe: convert it with openssl pkcs8 -topk8 -in %s -out NEW", path)
	}
	if block.Type == "ENCRYPTED PRIVATE KEY" {
		if passwordFile == "" {
			return nil, fault(f, path, "the key is encrypted: give %s", KeyPasswordFile)
		}
		password, err := readFile(KeyPasswordFile, passwordFile)
		if err != nil {
			return nil, err
		}
		line, _, _ := strings.Cut(string(password), "\n")
		if der, err = decryptPKCS8(block.Bytes, strings.TrimSuffix(line, "\r")); err != nil {
			return nil, &FieldError{f, path, err}
		}
	}
	key, err := parseKey(der)
	if err != nil {
		return nil, fault(f, path, "the private key is damaged or of an unknown kind: %v", err)
	}
	return key, nil
}

// parseKey tries the three encodings; the error is PKCS#8's, the usual one.
func parseKey(der []byte) (crypto.Signer, error) {
	if key, err := x509.ParsePKCS1PrivateKey(der); err == nil {
		return key, nil
	}
	if key, err := x509.ParseECPrivateKey(der); err == nil {
		return key, nil
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, err
	}
	if signer, ok := key.(crypto.Signer); ok {
		return signer, nil
	}
	return nil, fmt.Errorf("a key of type %T cannot sign", key)
}

// nameOf is the name of a certificate in messages: its common name, or its first SAN.
func nameOf(c *x509.Certificate) string {
	if c.Subject.CommonName != "" {
		return fmt.Sprintf("%q", c.Subject.CommonName)
	}
	if names := sans(c); len(names) > 0 {
		return fmt.Sprintf("%q", names[0])
	}
	return fmt.Sprintf("serial %x", c.SerialNumber)
}

// Faults splits the error of [Options.ClientConfig] into one for each file or setting;
// none for nil.
func Faults(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var list []error
		for _, one := range joined.Unwrap() {
			list = append(list, Faults(one)...)
		}
		return list
	}
	return []error{err}
}
