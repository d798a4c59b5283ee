package packet

const (
	ruleAuthVersion = "AUTH exists in MQTT 5 only"
	ruleAuthMethod  = "AUTH needs an Authentication Method"
)

// Append appends a as one control packet of version v, which must be V5. On an
// error, an *InvalidError, dst is returned as it was.
func (a *Auth) Append(dst []byte, v Version) ([]byte, error) {
	w := begin(dst, AUTH)
	switch {
	case v != V5:
		w.fail("version", ruleAuthVersion)
	case a.needsMethod():
		w.fail("Authentication Method", ruleAuthMethod)
	}
	w.outcome(a.Code, &a.Properties)
	return w.end()
}

// needsMethod tells a missing method. Success without any property is legal,
// because 3.15.2.1 lets both be left out.
func (a *Auth) needsMethod() bool {
	bare := a.Code == ReasonSuccess && a.Properties.IsZero()
	return !bare && a.Properties.AuthMethod == nil
}

// Decode reads f, an AUTH packet of version v, into a. The error is a
// *MalformedError.
func (a *Auth) Decode(f Frame, v Version) error {
	*a = Auth{}
	r := open(f, AUTH, v)
	if v != V5 {
		r.failAt(-r.base, ReasonProtocolError, ruleAuthVersion)
	}
	a.Code = r.outcome(&a.Properties)
	if a.needsMethod() {
		r.fail(ReasonProtocolError, ruleAuthMethod)
	}
	return r.close()
}
