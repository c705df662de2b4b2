# Changes of the lists of tenants, one a line: when, who, verb, tenant, what was written of users, managers and sudoers.
#   jq -rf lists.jq audit.log
select(.objectRef.resource == "lnamespaces" and (.objectRef | has("subresource") | not))
| select(.requestObject.spec and .responseStatus.code < 300)
| [
    .requestReceivedTimestamp,
    .impersonatedUser.username // .user.username,
    .verb,
    .objectRef.name,
    (.requestObject.spec | {users, managers, sudoers} | with_entries(select(.value)) | tojson)
  ]
| @tsv
