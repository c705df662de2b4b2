package story

// deed is one kind of Event. It reports whether it did something.
type deed struct {
	name   string
	weight int
	asked  int // its weight in scripts of requests
	do     func(h *History, e Event) bool
}

// deeds are all kinds of Events. A new one belongs at the end of its part.
var deeds = []deed{
	{"a tenant is made", 8, 3, (*History).makeTenant},
	{"a SubNamespace is made", 14, 0, (*History).makeSub},
	{"lists of a tenant change", 8, 5, (*History).editLists},
	{"limits of a tenant change", 6, 0, (*History).editLimits},
	{"a tenant's template changes", 3, 0, (*History).editTemplate},
	{"a tenant is deleted", 3, 1, (*History).deleteTenant},
	{"a SubNamespace is deleted", 4, 0, (*History).deleteSub},
	{"a namespace is made", 4, 0, (*History).makeNamespace},
	{"a namespace is deleted", 2, 1, (*History).deleteNamespace},
	{"a template is made", 3, 0, (*History).makeTemplate},
	{"a namespace is placed", 6, 0, (*History).placeNamespace},
	{"a hierarchy is configured", 4, 0, (*History).configure},

	{"a source is made", 12, 0, (*History).makeSource},
	{"a source changes", 8, 0, (*History).editSource},
	{"a source is deleted", 4, 0, (*History).deleteSource},
	{"a copy is changed", 3, 0, (*History).editCopy},
	{"a copy is deleted", 3, 0, (*History).deleteCopy},
	{"an object is in the way", 3, 0, (*History).makeObstacle},
	{"a distribution is made", 4, 0, (*History).makeDistribution},
	{"a distribution changes", 4, 0, (*History).editDistribution},
	{"a distribution is deleted", 2, 0, (*History).deleteDistribution},

	{"a quota of a subtree is made", 3, 0, (*History).makeSubtreeQuota},
	{"a quota of a subtree changes", 2, 0, (*History).editSubtreeQuota},
	{"a quota of a subtree is deleted", 1, 0, (*History).deleteSubtreeQuota},
	{"a workload wants pods", 8, 0, (*History).makeWorkload},
	{"pods are deleted", 3, 0, (*History).deletePods},
	{"a share is deleted", 1, 0, (*History).deleteShare},

	{"the operator is killed", 3, 4, (*History).kill},
	{"the operator is stopped", 2, 2, (*History).stop},
	{"a standby starts", 2, 2, (*History).startStandby},
	{"requests fail for a while", 4, 2, (*History).fail},
	{"all works again", 4, 6, (*History).recover},
	{"watches break", 3, 2, (*History).breakWatches},
	{"a watch lags", 4, 2, (*History).holdWatch},
	{"etcd is compacted", 1, 1, (*History).compact},

	{"a tenant offers requests", 0, 6, (*History).offerRequests},
	{"one person is (not) eligible", 0, 5, (*History).editEligible},
	{"someone asks for sudo", 0, 30, (*History).askForSudo},
	{"someone approves", 0, 40, (*History).approve},
	{"someone denies", 0, 4, (*History).deny},
	{"someone ends sudo", 0, 8, (*History).endSudo},
	{"a request is deleted", 0, 1, (*History).deleteRequest},
	{"a timer is deleted", 0, 2, (*History).deleteTimer},
	{"a tenant is replaced", 0, 2, (*History).replaceTenant},
	{"some minutes pass", 0, 5, (*History).wait},
	{"the operator dies in a grant", 0, 6, (*History).killAtSudo},
	{"the operator's clock steps", 0, 2, (*History).stepClock},
	{"the controller manager goes", 0, 2, (*History).takeManagerAway},
	{"the controller manager is back", 0, 6, (*History).bringManagerBack},
	{"a policy of requests is lost", 0, 2, (*History).dropPolicy},
	{"policies of requests are back", 0, 4, (*History).bringPoliciesBack},
}
