//go:build !race

package broker

const allocationLimit = 0.01
