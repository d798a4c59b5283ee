//go:build !unix

package cmd

// raiseNoFile returns 0: there is no such limit, or it is not known.
func raiseNoFile() uint64 { return 0 }

// hardNoFile returns 0 likewise.
func hardNoFile() uint64 { return 0 }
