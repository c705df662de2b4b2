// Package sudo decides about sudo on request: who is eligible, whose decisions count, and what the next write of a grant is.
//
// The control plane ends a grant, not the operator: the grant's Role and RoleBinding are owned by a Job without pods, the timer, which the
// controller manager deletes after its time. So Next grants nothing before the timer runs.
//
// Next is called again after each write, with facts that are read live. So a kill between two writes is the same as a pass that begins.
// It looks at what ends a right before what gives one.
package sudo
