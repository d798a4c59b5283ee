//go:build race

package broker

// The race detector makes sync.Pool forget one of four, so that a few
// allocations per batch are its own.
const allocationLimit = 0.05
