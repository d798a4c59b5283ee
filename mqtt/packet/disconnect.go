package packet

// Append appends d as one control packet of version v, in its shortest form;
// the code and the properties are left out in 3.x. On an error, an
// *InvalidError, dst is returned as it was.
func (d *Disconnect) Append(dst []byte, v Version) ([]byte, error) {
	w := begin(dst, DISCONNECT)
	if v == V5 {
		w.outcome(d.Code, &d.Properties)
	}
	return w.end()
}

// Decode reads f, a DISCONNECT of version v, into d. The error is a
// *MalformedError.
func (d *Disconnect) Decode(f Frame, v Version) error {
	*d = Disconnect{}
	r := open(f, DISCONNECT, v)
	if v == V5 {
		d.Code = r.outcome(&d.Properties)
	}
	return r.close()
}
