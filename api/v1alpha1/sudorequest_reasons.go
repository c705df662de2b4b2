package v1alpha1

// Reasons of condition Active of a SudoRequest, which also has Granted, Pending, PolicyMissing and GroupInUse. From ReasonTimeOver on, they
// are for ever.
const (
	// Condition Active: the operator is granting the right, and waits for the timer that ends it.
	ReasonGranting Reason = "Granting"
	// Condition Active, Event: the controller manager does not run the timer that would end the right, or the API server refuses it, so
	// nothing is granted.
	ReasonTimerMissing Reason = "TimerMissing"
	// Condition Active, Event: the request has ended, but the right stays in force: finalizers of others hold its RoleBinding and Role. The
	// message names them.
	ReasonNotEnded Reason = "NotEnded"
	// Condition Active: the time is over.
	ReasonTimeOver Reason = "TimeOver"
	// Condition Active: somebody has ended it; the message says who.
	ReasonEnded Reason = "Ended"
	// Condition Active: an approver or a manager has denied it.
	ReasonDenied Reason = "Denied"
	// Condition Active: nobody has approved it in time (`sudo.requests.pendingFor`).
	ReasonExpired Reason = "Expired"
	// Condition Active: the requester is not, or no longer, among `spec.sudoRequests.eligible`.
	ReasonNotEligible Reason = "NotEligible"
	// Condition Active: the duration is more than the tenant or the configuration allows.
	ReasonTooLong Reason = "TooLong"
	// Condition Active: the requester has too many open requests, or has made too many on one day.
	ReasonTooMany Reason = "TooMany"
	// Condition Active: the tenant or the configuration does not allow sudo without approval.
	ReasonBreakGlassForbidden Reason = "BreakGlassForbidden"
	// Condition Active: the LNamespace is gone, or is not older than the request.
	ReasonTenantReplaced Reason = "TenantReplaced"

	// Event on a SudoRequest: somebody asks for sudo.
	ReasonSudoRequested Reason = "SudoRequested"
	// Event on a SudoRequest: the right is in force.
	ReasonSudoGranted Reason = "SudoGranted"
	// Event on a SudoRequest: the request gets no right; the message says why.
	ReasonSudoDenied Reason = "SudoDenied"
	// Event on a SudoRequest: the right has ended; the message says why, and by whom.
	ReasonSudoEnded Reason = "SudoEnded"
	// Event on a SudoRequest and its LNamespace: sudo was granted without approval.
	ReasonBreakGlass Reason = "BreakGlass"
	// Event on a SudoRequest: the operator ended the right, because the timer did not.
	ReasonTimerLate Reason = "TimerLate"
)
