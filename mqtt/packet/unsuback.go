package packet

// Append appends u, encoded for version v, to dst. In 3.x it leaves out the codes and the
// properties. On error, which is an *InvalidError, it returns dst unchanged.
func (u *Unsuback) Append(dst []byte, v Version) ([]byte, error) {
	w := begin(dst, UNSUBACK)
	w.packetID(u.PacketID)
	if v == V5 {
		w.properties(UNSUBACK, &u.Properties)
		w.codes(u.Codes, reasonsOf(UNSUBACK, v))
	}
	return w.end()
}

// Decode decodes f, an UNSUBACK of version v, into u. It reuses the array of u.Codes. Some
// servers send no codes even in MQTT 5: the caller, which knows the number of filters,
// must decide whether that is an error. The error is a *MalformedError.
func (u *Unsuback) Decode(f Frame, v Version) error {
	*u = Unsuback{Codes: u.Codes[:0]}
	r := open(f, UNSUBACK, v)
	u.PacketID = r.packetID()
	if v == V5 {
		r.properties(UNSUBACK, &u.Properties)
	}
	if v == V5 && r.left() > 0 {
		u.Codes = r.codes(u.Codes, reasonsOf(UNSUBACK, v))
	}
	return r.close()
}
