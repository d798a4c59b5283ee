package packet

// Append appends d, encoded for version v, to dst. It uses the shortest form, and
// leaves out the code and the properties in 3.x. On error, which is an *InvalidError,
// it returns dst unchanged.
func (d *Disconnect) Append(dst []byte, v Version) ([]byte, error) {
	w := begin(dst, DISCONNECT)
	if v == V5 {
		w.reasonAndProperties(d.Code, &d.Properties)
	}
	return w.end()
}

// Decode decodes f, a DISCONNECT of version v, into d. The error is a *MalformedError.
func (d *Disconnect) Decode(f Frame, v Version) error {
	*d = Disconnect{}
	r := open(f, DISCONNECT, v)
	if v == V5 {
		d.Code = r.reasonAndProperties(&d.Properties)
	}
	return r.close()
}
