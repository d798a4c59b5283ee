package packet

// Append appends u as one control packet of version v; the codes and the
// properties are left out in 3.x. On an error, an *InvalidError, dst is
// returned as it was.
func (u *Unsuback) Append(dst []byte, v Version) ([]byte, error) {
	w := begin(dst, UNSUBACK)
	w.packetID(u.PacketID)
	if v == V5 {
		w.properties(UNSUBACK, &u.Properties)
		w.codes(u.Codes, reasonsOf(UNSUBACK, v))
	}
	return w.end()
}

// Decode reads f, an UNSUBACK of version v, into u, whose Codes array is used
// again. In MQTT 5 too Codes may turn out empty, as some servers send none: the
// caller, who knows how many filters were asked for, judges that. The error is
// a *MalformedError.
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
