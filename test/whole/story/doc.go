// Package story makes up histories for test/whole: what users, managers, cluster admins and faults do, by a seed. It runs them, makes one
// that fails as short as it can be, and prints it as a table.
package story
