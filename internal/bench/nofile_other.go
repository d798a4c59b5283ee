//go:build !unix

package bench

// RaiseNoFile returns 0: there is no such limit, or it is unknown.
func RaiseNoFile() uint64 { return 0 }

// hardNoFile returns 0 likewise.
func hardNoFile() uint64 { return 0 }
