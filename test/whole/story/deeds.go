package story

// deed is one kind of Event. It reports whether it did something.
type deed struct {
	name   string
	weight int
	do     func(h *History, e Event) bool
}

// deeds are all kinds of Events. A new one belongs at the end of its part.
var deeds = []deed{
	{"a tenant is made", 8, (*History).makeTenant},
	{"a SubNamespace is made", 14, (*History).makeSub},
	{"lists of a tenant change", 8, (*History).editLists},
	{"limits of a tenant change", 6, (*History).editLimits},
	{"a tenant's template changes", 3, (*History).editTemplate},
	{"a tenant is deleted", 3, (*History).deleteTenant},
	{"a SubNamespace is deleted", 4, (*History).deleteSub},
	{"a namespace is made", 4, (*History).makeNamespace},
	{"a namespace is deleted", 2, (*History).deleteNamespace},
	{"a template is made", 3, (*History).makeTemplate},
	{"a namespace is placed", 6, (*History).placeNamespace},
	{"a hierarchy is configured", 4, (*History).configure},

	{"a source is made", 12, (*History).makeSource},
	{"a source changes", 8, (*History).editSource},
	{"a source is deleted", 4, (*History).deleteSource},
	{"a copy is changed", 3, (*History).editCopy},
	{"a copy is deleted", 3, (*History).deleteCopy},
	{"an object is in the way", 3, (*History).makeObstacle},
	{"a distribution is made", 4, (*History).makeDistribution},
	{"a distribution changes", 4, (*History).editDistribution},
	{"a distribution is deleted", 2, (*History).deleteDistribution},

	{"a quota of a subtree is made", 3, (*History).makeSubtreeQuota},
	{"a quota of a subtree changes", 2, (*History).editSubtreeQuota},
	{"a quota of a subtree is deleted", 1, (*History).deleteSubtreeQuota},
	{"a workload wants pods", 8, (*History).makeWorkload},
	{"pods are deleted", 3, (*History).deletePods},
	{"a share is deleted", 1, (*History).deleteShare},

	{"the operator is killed", 3, (*History).kill},
	{"the operator is stopped", 2, (*History).stop},
	{"a standby starts", 2, (*History).startStandby},
	{"requests fail for a while", 4, (*History).fail},
	{"all works again", 4, (*History).recover},
	{"watches break", 3, (*History).breakWatches},
	{"a watch lags", 4, (*History).holdWatch},
	{"etcd is compacted", 1, (*History).compact},
}
