package tlsconf

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"hash"
)

// maxIterations limits the key derivation: a hostile file could keep the program busy
// for hours. OpenSSL uses 2,048.
const maxIterations = 10_000_000

// The structures of RFC 5958 section 3 and RFC 8018 appendix A.
type (
	encryptedKey struct {
		Algorithm struct {
			ID     asn1.ObjectIdentifier
			Params pbes2Params
		}
		Data []byte
	}
	pbes2Params struct {
		KDF struct {
			ID     asn1.ObjectIdentifier
			Params pbkdf2Params
		}
		Cipher struct {
			ID asn1.ObjectIdentifier
			IV []byte
		}
	}
	pbkdf2Params struct {
		Salt       []byte
		Iterations int
		KeyLength  int                      `asn1:"optional"`
		PRF        pkix.AlgorithmIdentifier `asn1:"optional"`
	}
)

var (
	oidPBES2  = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 13}
	oidPBKDF2 = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 12}
)

var errKeyCipher = errors.New("the encryption of the key is not supported, only PBES2 with PBKDF2 and AES-CBC: " +
	"convert it with openssl pkcs8 -topk8 -v2 aes-256-cbc")

var errKeyPassword = &message{"the key cannot be decrypted: check the password in %s", []any{KeyPasswordFile}}

// decryptPKCS8 decrypts an EncryptedPrivateKeyInfo under PBES2. [RFC 8018 6.2]
func decryptPKCS8(der []byte, password string) ([]byte, error) {
	var key encryptedKey
	if _, err := asn1.Unmarshal(der, &key); err != nil {
		return nil, errKeyCipher
	}
	kdf, enc := key.Algorithm.Params.KDF, key.Algorithm.Params.Cipher
	newHash, size := prf(kdf.Params.PRF.Algorithm), keySize(enc.ID)
	if !key.Algorithm.ID.Equal(oidPBES2) || !kdf.ID.Equal(oidPBKDF2) || newHash == nil || size == 0 ||
		kdf.Params.Iterations < 1 || kdf.Params.Iterations > maxIterations {
		return nil, errKeyCipher
	}
	secret, err := pbkdf2.Key(newHash, password, kdf.Params.Salt, kdf.Params.Iterations, size)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	if len(enc.IV) != aes.BlockSize || len(key.Data) == 0 || len(key.Data)%aes.BlockSize != 0 {
		return nil, errKeyCipher
	}
	plain := make([]byte, len(key.Data))
	cipher.NewCBCDecrypter(block, enc.IV).CryptBlocks(plain, key.Data)
	return unpad(plain)
}

// unpad removes the padding of PKCS#7; a wrong password is usually noticed here.
func unpad(plain []byte) ([]byte, error) {
	n := int(plain[len(plain)-1])
	if n < 1 || n > aes.BlockSize || n > len(plain) {
		return nil, errKeyPassword
	}
	for _, b := range plain[len(plain)-n:] {
		if int(b) != n {
			return nil, errKeyPassword
		}
	}
	return plain[:len(plain)-n], nil
}

// prf returns the hash of an HMAC identifier; absent means HMAC-SHA-1.
func prf(id asn1.ObjectIdentifier) func() hash.Hash {
	switch id.String() {
	case "", "1.2.840.113549.2.7":
		return sha1.New
	case "1.2.840.113549.2.9":
		return sha256.New
	case "1.2.840.113549.2.10":
		return sha512.New384
	case "1.2.840.113549.2.11":
		return sha512.New
	}
	return nil
}

// keySize returns the key length in bytes of an AES-CBC identifier, or 0.
func keySize(id asn1.ObjectIdentifier) int {
	switch id.String() {
	case "2.16.840.1.101.3.4.1.2":
		return 16
	case "2.16.840.1.101.3.4.1.22":
		return 24
	case "2.16.840.1.101.3.4.1.42":
		return 32
	}
	return 0
}
