package packet

const (
	ruleAuthVersion = "AUTH exists in MQTT 5 only"
	ruleAuthMethod  = "AUTH needs an Authentication Method"
)

// Append appends a, encoded for version v, to dst. v must be V5. On error, which is an
// *InvalidError, it returns dst unchanged.
func (a *Auth) Append(dst []byte, v Version) ([]byte, error) {
	w := begin(dst, AUTH)
	switch {
	case v != V5:
		w.fail("version", ruleAuthVersion)
	case a.needsMethod():
		w.fail("Authentication Method", ruleAuthMethod)
	}
	w.reasonAndProperties(a.Code, &a.Properties)
	return w.end()
}

// needsMethod reports whether the Authentication Method is missing. Success without
// any property needs none: section 3.15.2.1 allows both to be left out.
func (a *Auth) needsMethod() bool {
	bare := a.Code == ReasonSuccess && a.Properties.IsZero()
	return !bare && a.Properties.AuthMethod == nil
}

// Decode decodes f, an AUTH of version v, into a. The error is a *MalformedError.
func (a *Auth) Decode(f Frame, v Version) error {
	*a = Auth{}
	r := open(f, AUTH, v)
	if v != V5 {
		r.failAt(-r.base, ReasonProtocolError, ruleAuthVersion)
	}
	a.Code = r.reasonAndProperties(&a.Properties)
	if a.needsMethod() {
		r.fail(ReasonProtocolError, ruleAuthMethod)
	}
	return r.close()
}
