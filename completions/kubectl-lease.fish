# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_kubectl_lease_global_optspecs
    string join \n kubeconfig= context= cluster= user= n/namespace= request-timeout= as= as-group= as-uid= as-user-extra= s/server= token= username= password= certificate-authority= client-certificate= client-key= insecure-skip-tls-verify tls-server-name= proxy-url= disable-compression h/help V/version
end

function __fish_kubectl_lease_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_kubectl_lease_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_kubectl_lease_using_subcommand
    set -l cmd (__fish_kubectl_lease_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c kubectl-lease -n "__fish_kubectl_lease_needs_command" -l kubeconfig -d 'Path to the kubeconfig file to use for CLI requests' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_needs_command" -l context -d 'The name of the kubeconfig context to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_needs_command" -l cluster -d 'The name of the kubeconfig cluster to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_needs_command" -l user -d 'The name of the kubeconfig user to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_needs_command" -s n -l namespace -d 'If present, the namespace scope for this CLI request' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_needs_command" -l request-timeout -d 'The length of time to wait before giving up on a single server request, such as 500ms, 30s or 2m. A value of zero means don\'t timeout requests' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_needs_command" -l as -d 'Username to impersonate for the operation. User could be a regular user or a service account in a namespace' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_needs_command" -l as-group -d 'Group to impersonate for the operation, this flag can be repeated to specify multiple groups' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_needs_command" -l as-uid -d 'UID to impersonate for the operation' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_needs_command" -l as-user-extra -d 'User extras to impersonate for the operation, as KEY=VALUE. This flag can be repeated to specify multiple values for the same key' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_needs_command" -s s -l server -d 'The address and port of the Kubernetes API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_needs_command" -l token -d 'Bearer token for authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_needs_command" -l username -d 'Username for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_needs_command" -l password -d 'Password for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_needs_command" -l certificate-authority -d 'Path to a cert file for the certificate authority' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_needs_command" -l client-certificate -d 'Path to a client certificate file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_needs_command" -l client-key -d 'Path to a client key file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_needs_command" -l tls-server-name -d 'Server name to use for server certificate validation. If it is not provided, the hostname used to contact the server is used' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_needs_command" -l proxy-url -d 'URL of the proxy to use for requests to the server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_needs_command" -l insecure-skip-tls-verify -d 'If true, the server\'s certificate will not be checked for validity. This will make your HTTPS connections insecure'
complete -c kubectl-lease -n "__fish_kubectl_lease_needs_command" -l disable-compression -d 'If true, opt-out of response compression for all requests to the server'
complete -c kubectl-lease -n "__fish_kubectl_lease_needs_command" -s h -l help -d 'Print help'
complete -c kubectl-lease -n "__fish_kubectl_lease_needs_command" -s V -l version -d 'Print version'
complete -c kubectl-lease -n "__fish_kubectl_lease_needs_command" -f -a "apiservers" -d 'List kube-apiservers and whether they are alive'
complete -c kubectl-lease -n "__fish_kubectl_lease_needs_command" -f -a "candidates" -d 'List the candidates of coordinated leader elections'
complete -c kubectl-lease -n "__fish_kubectl_lease_needs_command" -f -a "leaders" -d 'List leader-election leases, coordinated or not'
complete -c kubectl-lease -n "__fish_kubectl_lease_needs_command" -f -a "maint" -d 'Manage maintenance leases of nodes'
complete -c kubectl-lease -n "__fish_kubectl_lease_needs_command" -f -a "hold" -d 'Run a command while holding a lease'
complete -c kubectl-lease -n "__fish_kubectl_lease_needs_command" -f -a "partitions" -d 'List nodes without heartbeats and the pods stranded on them'
complete -c kubectl-lease -n "__fish_kubectl_lease_needs_command" -f -a "force-delete" -d 'Force-delete pods after an assessment of the risk'
complete -c kubectl-lease -n "__fish_kubectl_lease_needs_command" -f -a "fence" -d 'Mark a node out of service after its machine was powered off'
complete -c kubectl-lease -n "__fish_kubectl_lease_needs_command" -f -a "doctor" -d 'Check what this cluster supports and what you are permitted to do'
complete -c kubectl-lease -n "__fish_kubectl_lease_needs_command" -f -a "completion" -d 'Output shell completion code'
complete -c kubectl-lease -n "__fish_kubectl_lease_needs_command" -f -a "options" -d 'List the global command-line options'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand apiservers" -s o -l output -d 'Output format. One of: (table, wide, json, yaml, name)' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand apiservers" -s l -l selector -d 'Selector (label query) to filter on, supports \'=\', \'==\', and \'!=\' (e.g. -l key1=value1,key2=value2)' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand apiservers" -l field-selector -d 'Selector (field query) to filter on, supports \'=\', \'==\', and \'!=\' (e.g. --field-selector metadata.name=x)' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand apiservers" -l kubeconfig -d 'Path to the kubeconfig file to use for CLI requests' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand apiservers" -l context -d 'The name of the kubeconfig context to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand apiservers" -l cluster -d 'The name of the kubeconfig cluster to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand apiservers" -l user -d 'The name of the kubeconfig user to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand apiservers" -s n -l namespace -d 'If present, the namespace scope for this CLI request' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand apiservers" -l request-timeout -d 'The length of time to wait before giving up on a single server request, such as 500ms, 30s or 2m. A value of zero means don\'t timeout requests' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand apiservers" -l as -d 'Username to impersonate for the operation. User could be a regular user or a service account in a namespace' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand apiservers" -l as-group -d 'Group to impersonate for the operation, this flag can be repeated to specify multiple groups' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand apiservers" -l as-uid -d 'UID to impersonate for the operation' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand apiservers" -l as-user-extra -d 'User extras to impersonate for the operation, as KEY=VALUE. This flag can be repeated to specify multiple values for the same key' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand apiservers" -s s -l server -d 'The address and port of the Kubernetes API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand apiservers" -l token -d 'Bearer token for authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand apiservers" -l username -d 'Username for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand apiservers" -l password -d 'Password for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand apiservers" -l certificate-authority -d 'Path to a cert file for the certificate authority' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand apiservers" -l client-certificate -d 'Path to a client certificate file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand apiservers" -l client-key -d 'Path to a client key file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand apiservers" -l tls-server-name -d 'Server name to use for server certificate validation. If it is not provided, the hostname used to contact the server is used' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand apiservers" -l proxy-url -d 'URL of the proxy to use for requests to the server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand apiservers" -l exit-code -d 'Exit with code 4 if a listed kube-apiserver is not alive'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand apiservers" -s w -l watch -d 'After listing the requested objects, watch for changes'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand apiservers" -l no-headers -d 'When using the table or wide output format, don\'t print headers'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand apiservers" -l insecure-skip-tls-verify -d 'If true, the server\'s certificate will not be checked for validity. This will make your HTTPS connections insecure'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand apiservers" -l disable-compression -d 'If true, opt-out of response compression for all requests to the server'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand apiservers" -s h -l help -d 'Print help'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and not __fish_seen_subcommand_from explain wait rehearse set-priority clear-priority repair prune" -s o -l output -d 'Output format. One of: (table, wide, json, yaml, name)' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and not __fish_seen_subcommand_from explain wait rehearse set-priority clear-priority repair prune" -s l -l selector -d 'Selector (label query) to filter on, supports \'=\', \'==\', and \'!=\' (e.g. -l key1=value1,key2=value2)' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and not __fish_seen_subcommand_from explain wait rehearse set-priority clear-priority repair prune" -l field-selector -d 'Selector (field query) to filter on, supports \'=\', \'==\', and \'!=\' (e.g. --field-selector metadata.name=x)' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and not __fish_seen_subcommand_from explain wait rehearse set-priority clear-priority repair prune" -l kubeconfig -d 'Path to the kubeconfig file to use for CLI requests' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and not __fish_seen_subcommand_from explain wait rehearse set-priority clear-priority repair prune" -l context -d 'The name of the kubeconfig context to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and not __fish_seen_subcommand_from explain wait rehearse set-priority clear-priority repair prune" -l cluster -d 'The name of the kubeconfig cluster to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and not __fish_seen_subcommand_from explain wait rehearse set-priority clear-priority repair prune" -l user -d 'The name of the kubeconfig user to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and not __fish_seen_subcommand_from explain wait rehearse set-priority clear-priority repair prune" -s n -l namespace -d 'If present, the namespace scope for this CLI request' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and not __fish_seen_subcommand_from explain wait rehearse set-priority clear-priority repair prune" -l request-timeout -d 'The length of time to wait before giving up on a single server request, such as 500ms, 30s or 2m. A value of zero means don\'t timeout requests' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and not __fish_seen_subcommand_from explain wait rehearse set-priority clear-priority repair prune" -l as -d 'Username to impersonate for the operation. User could be a regular user or a service account in a namespace' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and not __fish_seen_subcommand_from explain wait rehearse set-priority clear-priority repair prune" -l as-group -d 'Group to impersonate for the operation, this flag can be repeated to specify multiple groups' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and not __fish_seen_subcommand_from explain wait rehearse set-priority clear-priority repair prune" -l as-uid -d 'UID to impersonate for the operation' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and not __fish_seen_subcommand_from explain wait rehearse set-priority clear-priority repair prune" -l as-user-extra -d 'User extras to impersonate for the operation, as KEY=VALUE. This flag can be repeated to specify multiple values for the same key' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and not __fish_seen_subcommand_from explain wait rehearse set-priority clear-priority repair prune" -s s -l server -d 'The address and port of the Kubernetes API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and not __fish_seen_subcommand_from explain wait rehearse set-priority clear-priority repair prune" -l token -d 'Bearer token for authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and not __fish_seen_subcommand_from explain wait rehearse set-priority clear-priority repair prune" -l username -d 'Username for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and not __fish_seen_subcommand_from explain wait rehearse set-priority clear-priority repair prune" -l password -d 'Password for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and not __fish_seen_subcommand_from explain wait rehearse set-priority clear-priority repair prune" -l certificate-authority -d 'Path to a cert file for the certificate authority' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and not __fish_seen_subcommand_from explain wait rehearse set-priority clear-priority repair prune" -l client-certificate -d 'Path to a client certificate file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and not __fish_seen_subcommand_from explain wait rehearse set-priority clear-priority repair prune" -l client-key -d 'Path to a client key file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and not __fish_seen_subcommand_from explain wait rehearse set-priority clear-priority repair prune" -l tls-server-name -d 'Server name to use for server certificate validation. If it is not provided, the hostname used to contact the server is used' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and not __fish_seen_subcommand_from explain wait rehearse set-priority clear-priority repair prune" -l proxy-url -d 'URL of the proxy to use for requests to the server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and not __fish_seen_subcommand_from explain wait rehearse set-priority clear-priority repair prune" -l exit-code -d 'Exit with code 4 if a listed election, or the election controller, has a problem'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and not __fish_seen_subcommand_from explain wait rehearse set-priority clear-priority repair prune" -s A -l all-namespaces -d 'List the requested objects across all namespaces, even if one is given with --namespace. This is the default without --namespace'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and not __fish_seen_subcommand_from explain wait rehearse set-priority clear-priority repair prune" -s w -l watch -d 'After listing the requested objects, watch for changes'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and not __fish_seen_subcommand_from explain wait rehearse set-priority clear-priority repair prune" -l no-headers -d 'When using the table or wide output format, don\'t print headers'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and not __fish_seen_subcommand_from explain wait rehearse set-priority clear-priority repair prune" -l insecure-skip-tls-verify -d 'If true, the server\'s certificate will not be checked for validity. This will make your HTTPS connections insecure'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and not __fish_seen_subcommand_from explain wait rehearse set-priority clear-priority repair prune" -l disable-compression -d 'If true, opt-out of response compression for all requests to the server'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and not __fish_seen_subcommand_from explain wait rehearse set-priority clear-priority repair prune" -s h -l help -d 'Print help'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and not __fish_seen_subcommand_from explain wait rehearse set-priority clear-priority repair prune" -a "explain" -d 'Explain the election for a lease'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and not __fish_seen_subcommand_from explain wait rehearse set-priority clear-priority repair prune" -a "wait" -d 'Wait until an instance of a component leads'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and not __fish_seen_subcommand_from explain wait rehearse set-priority clear-priority repair prune" -a "rehearse" -d 'Rehearse an upgrade of a component: show the leader after each step'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and not __fish_seen_subcommand_from explain wait rehearse set-priority clear-priority repair prune" -a "set-priority" -d 'Set the priority of a candidate: the highest priority leads'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and not __fish_seen_subcommand_from explain wait rehearse set-priority clear-priority repair prune" -a "clear-priority" -d 'Clear the priority of candidates'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and not __fish_seen_subcommand_from explain wait rehearse set-priority clear-priority repair prune" -a "repair" -d 'Repair an election that is stuck'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and not __fish_seen_subcommand_from explain wait rehearse set-priority clear-priority repair prune" -a "prune" -d 'Delete candidates that components left behind'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from explain" -s o -l output -d 'Output format. One of: (table, wide, json, yaml, name)' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from explain" -l kubeconfig -d 'Path to the kubeconfig file to use for CLI requests' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from explain" -l context -d 'The name of the kubeconfig context to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from explain" -l cluster -d 'The name of the kubeconfig cluster to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from explain" -l user -d 'The name of the kubeconfig user to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from explain" -s n -l namespace -d 'If present, the namespace scope for this CLI request' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from explain" -l request-timeout -d 'The length of time to wait before giving up on a single server request, such as 500ms, 30s or 2m. A value of zero means don\'t timeout requests' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from explain" -l as -d 'Username to impersonate for the operation. User could be a regular user or a service account in a namespace' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from explain" -l as-group -d 'Group to impersonate for the operation, this flag can be repeated to specify multiple groups' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from explain" -l as-uid -d 'UID to impersonate for the operation' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from explain" -l as-user-extra -d 'User extras to impersonate for the operation, as KEY=VALUE. This flag can be repeated to specify multiple values for the same key' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from explain" -s s -l server -d 'The address and port of the Kubernetes API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from explain" -l token -d 'Bearer token for authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from explain" -l username -d 'Username for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from explain" -l password -d 'Password for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from explain" -l certificate-authority -d 'Path to a cert file for the certificate authority' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from explain" -l client-certificate -d 'Path to a client certificate file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from explain" -l client-key -d 'Path to a client key file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from explain" -l tls-server-name -d 'Server name to use for server certificate validation. If it is not provided, the hostname used to contact the server is used' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from explain" -l proxy-url -d 'URL of the proxy to use for requests to the server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from explain" -l insecure-skip-tls-verify -d 'If true, the server\'s certificate will not be checked for validity. This will make your HTTPS connections insecure'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from explain" -l disable-compression -d 'If true, opt-out of response compression for all requests to the server'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from explain" -s h -l help -d 'Print help'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from wait" -l leader -d 'Host of the instance that should lead, or its candidate name or holder identity. A prefix of those is enough, such as HOST_4f96' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from wait" -l stable -d 'Wait until the instance has led and renewed for this long' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from wait" -l timeout -d 'The length of time to wait before giving up' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from wait" -l kubeconfig -d 'Path to the kubeconfig file to use for CLI requests' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from wait" -l context -d 'The name of the kubeconfig context to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from wait" -l cluster -d 'The name of the kubeconfig cluster to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from wait" -l user -d 'The name of the kubeconfig user to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from wait" -s n -l namespace -d 'If present, the namespace scope for this CLI request' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from wait" -l request-timeout -d 'The length of time to wait before giving up on a single server request, such as 500ms, 30s or 2m. A value of zero means don\'t timeout requests' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from wait" -l as -d 'Username to impersonate for the operation. User could be a regular user or a service account in a namespace' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from wait" -l as-group -d 'Group to impersonate for the operation, this flag can be repeated to specify multiple groups' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from wait" -l as-uid -d 'UID to impersonate for the operation' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from wait" -l as-user-extra -d 'User extras to impersonate for the operation, as KEY=VALUE. This flag can be repeated to specify multiple values for the same key' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from wait" -s s -l server -d 'The address and port of the Kubernetes API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from wait" -l token -d 'Bearer token for authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from wait" -l username -d 'Username for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from wait" -l password -d 'Password for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from wait" -l certificate-authority -d 'Path to a cert file for the certificate authority' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from wait" -l client-certificate -d 'Path to a client certificate file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from wait" -l client-key -d 'Path to a client key file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from wait" -l tls-server-name -d 'Server name to use for server certificate validation. If it is not provided, the hostname used to contact the server is used' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from wait" -l proxy-url -d 'URL of the proxy to use for requests to the server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from wait" -l insecure-skip-tls-verify -d 'If true, the server\'s certificate will not be checked for validity. This will make your HTTPS connections insecure'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from wait" -l disable-compression -d 'If true, opt-out of response compression for all requests to the server'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from wait" -s h -l help -d 'Print help'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from rehearse" -l to -d 'Version to upgrade to, such as 1.38 or 1.38.2' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from rehearse" -s o -l output -d 'Output format. One of: (table, wide, json, yaml, name)' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from rehearse" -l kubeconfig -d 'Path to the kubeconfig file to use for CLI requests' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from rehearse" -l context -d 'The name of the kubeconfig context to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from rehearse" -l cluster -d 'The name of the kubeconfig cluster to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from rehearse" -l user -d 'The name of the kubeconfig user to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from rehearse" -s n -l namespace -d 'If present, the namespace scope for this CLI request' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from rehearse" -l request-timeout -d 'The length of time to wait before giving up on a single server request, such as 500ms, 30s or 2m. A value of zero means don\'t timeout requests' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from rehearse" -l as -d 'Username to impersonate for the operation. User could be a regular user or a service account in a namespace' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from rehearse" -l as-group -d 'Group to impersonate for the operation, this flag can be repeated to specify multiple groups' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from rehearse" -l as-uid -d 'UID to impersonate for the operation' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from rehearse" -l as-user-extra -d 'User extras to impersonate for the operation, as KEY=VALUE. This flag can be repeated to specify multiple values for the same key' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from rehearse" -s s -l server -d 'The address and port of the Kubernetes API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from rehearse" -l token -d 'Bearer token for authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from rehearse" -l username -d 'Username for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from rehearse" -l password -d 'Password for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from rehearse" -l certificate-authority -d 'Path to a cert file for the certificate authority' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from rehearse" -l client-certificate -d 'Path to a client certificate file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from rehearse" -l client-key -d 'Path to a client key file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from rehearse" -l tls-server-name -d 'Server name to use for server certificate validation. If it is not provided, the hostname used to contact the server is used' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from rehearse" -l proxy-url -d 'URL of the proxy to use for requests to the server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from rehearse" -l rollback -d 'Rehearse the rollback after the upgrade: the instances in reverse order, then the kube-apiservers'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from rehearse" -l insecure-skip-tls-verify -d 'If true, the server\'s certificate will not be checked for validity. This will make your HTTPS connections insecure'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from rehearse" -l disable-compression -d 'If true, opt-out of response compression for all requests to the server'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from rehearse" -s h -l help -d 'Print help'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from set-priority" -l lease -d 'Only consider candidates for this lease' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from set-priority" -l for -d 'Keep the priority for this long, then clear it. The command runs until then, or until Ctrl-C' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from set-priority" -l wait -d 'Wait until the candidate leads and renews. Use --wait=DURATION to give up after that time; otherwise it gives up when the handover makes no progress for a minute' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from set-priority" -l dry-run -d 'Must be "none", "client", or "server". If client, only print what would be done, without sending it; this is the default if no value is given. If server, submit server-side requests without persisting anything' -r -f -a "none\t''
client\t''
server\t''"
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from set-priority" -l field-manager -d 'Name of the manager used to track field ownership' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from set-priority" -l kubeconfig -d 'Path to the kubeconfig file to use for CLI requests' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from set-priority" -l context -d 'The name of the kubeconfig context to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from set-priority" -l cluster -d 'The name of the kubeconfig cluster to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from set-priority" -l user -d 'The name of the kubeconfig user to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from set-priority" -s n -l namespace -d 'If present, the namespace scope for this CLI request' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from set-priority" -l request-timeout -d 'The length of time to wait before giving up on a single server request, such as 500ms, 30s or 2m. A value of zero means don\'t timeout requests' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from set-priority" -l as -d 'Username to impersonate for the operation. User could be a regular user or a service account in a namespace' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from set-priority" -l as-group -d 'Group to impersonate for the operation, this flag can be repeated to specify multiple groups' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from set-priority" -l as-uid -d 'UID to impersonate for the operation' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from set-priority" -l as-user-extra -d 'User extras to impersonate for the operation, as KEY=VALUE. This flag can be repeated to specify multiple values for the same key' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from set-priority" -s s -l server -d 'The address and port of the Kubernetes API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from set-priority" -l token -d 'Bearer token for authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from set-priority" -l username -d 'Username for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from set-priority" -l password -d 'Password for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from set-priority" -l certificate-authority -d 'Path to a cert file for the certificate authority' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from set-priority" -l client-certificate -d 'Path to a client certificate file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from set-priority" -l client-key -d 'Path to a client key file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from set-priority" -l tls-server-name -d 'Server name to use for server certificate validation. If it is not provided, the hostname used to contact the server is used' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from set-priority" -l proxy-url -d 'URL of the proxy to use for requests to the server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from set-priority" -l detach -d 'With --for, record the time at which the priority ends and exit. Use \'kubectl lease candidates clear-priority --expired\' to clear it'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from set-priority" -s y -l yes -d 'Skip confirmation'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from set-priority" -l force -d 'Continue even if the candidate does not acknowledge a ping, no election controller is running, the leader does not use coordinated leader election, or leading would violate the version skew policy'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from set-priority" -l insecure-skip-tls-verify -d 'If true, the server\'s certificate will not be checked for validity. This will make your HTTPS connections insecure'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from set-priority" -l disable-compression -d 'If true, opt-out of response compression for all requests to the server'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from set-priority" -s h -l help -d 'Print help'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from clear-priority" -l lease -d 'Only consider candidates for this lease' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from clear-priority" -l wait -d 'Wait until the next leader leads and renews. Use --wait=DURATION to give up after that time; otherwise it gives up when the handover makes no progress for a minute' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from clear-priority" -l dry-run -d 'Must be "none", "client", or "server". If client, only print what would be done, without sending it; this is the default if no value is given. If server, submit server-side requests without persisting anything' -r -f -a "none\t''
client\t''
server\t''"
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from clear-priority" -l field-manager -d 'Name of the manager used to track field ownership' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from clear-priority" -l kubeconfig -d 'Path to the kubeconfig file to use for CLI requests' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from clear-priority" -l context -d 'The name of the kubeconfig context to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from clear-priority" -l cluster -d 'The name of the kubeconfig cluster to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from clear-priority" -l user -d 'The name of the kubeconfig user to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from clear-priority" -s n -l namespace -d 'If present, the namespace scope for this CLI request' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from clear-priority" -l request-timeout -d 'The length of time to wait before giving up on a single server request, such as 500ms, 30s or 2m. A value of zero means don\'t timeout requests' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from clear-priority" -l as -d 'Username to impersonate for the operation. User could be a regular user or a service account in a namespace' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from clear-priority" -l as-group -d 'Group to impersonate for the operation, this flag can be repeated to specify multiple groups' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from clear-priority" -l as-uid -d 'UID to impersonate for the operation' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from clear-priority" -l as-user-extra -d 'User extras to impersonate for the operation, as KEY=VALUE. This flag can be repeated to specify multiple values for the same key' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from clear-priority" -s s -l server -d 'The address and port of the Kubernetes API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from clear-priority" -l token -d 'Bearer token for authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from clear-priority" -l username -d 'Username for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from clear-priority" -l password -d 'Password for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from clear-priority" -l certificate-authority -d 'Path to a cert file for the certificate authority' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from clear-priority" -l client-certificate -d 'Path to a client certificate file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from clear-priority" -l client-key -d 'Path to a client key file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from clear-priority" -l tls-server-name -d 'Server name to use for server certificate validation. If it is not provided, the hostname used to contact the server is used' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from clear-priority" -l proxy-url -d 'URL of the proxy to use for requests to the server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from clear-priority" -l all -d 'Select all candidates that have a priority'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from clear-priority" -l expired -d 'Select all candidates whose priority has expired'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from clear-priority" -l force -d 'Continue even while a handover is in progress, which can leave the lease without a leader'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from clear-priority" -s y -l yes -d 'Skip confirmation'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from clear-priority" -l insecure-skip-tls-verify -d 'If true, the server\'s certificate will not be checked for validity. This will make your HTTPS connections insecure'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from clear-priority" -l disable-compression -d 'If true, opt-out of response compression for all requests to the server'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from clear-priority" -s h -l help -d 'Print help'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from repair" -l wait -d 'Wait until a candidate leads and renews. Use --wait=DURATION to give up after that time; otherwise it gives up when the handover makes no progress for a minute' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from repair" -l dry-run -d 'Must be "none", "client", or "server". If client, only print what would be done, without sending it; this is the default if no value is given. If server, submit server-side requests without persisting anything' -r -f -a "none\t''
client\t''
server\t''"
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from repair" -l field-manager -d 'Name of the manager used to track field ownership' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from repair" -l kubeconfig -d 'Path to the kubeconfig file to use for CLI requests' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from repair" -l context -d 'The name of the kubeconfig context to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from repair" -l cluster -d 'The name of the kubeconfig cluster to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from repair" -l user -d 'The name of the kubeconfig user to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from repair" -s n -l namespace -d 'If present, the namespace scope for this CLI request' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from repair" -l request-timeout -d 'The length of time to wait before giving up on a single server request, such as 500ms, 30s or 2m. A value of zero means don\'t timeout requests' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from repair" -l as -d 'Username to impersonate for the operation. User could be a regular user or a service account in a namespace' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from repair" -l as-group -d 'Group to impersonate for the operation, this flag can be repeated to specify multiple groups' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from repair" -l as-uid -d 'UID to impersonate for the operation' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from repair" -l as-user-extra -d 'User extras to impersonate for the operation, as KEY=VALUE. This flag can be repeated to specify multiple values for the same key' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from repair" -s s -l server -d 'The address and port of the Kubernetes API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from repair" -l token -d 'Bearer token for authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from repair" -l username -d 'Username for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from repair" -l password -d 'Password for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from repair" -l certificate-authority -d 'Path to a cert file for the certificate authority' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from repair" -l client-certificate -d 'Path to a client certificate file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from repair" -l client-key -d 'Path to a client key file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from repair" -l tls-server-name -d 'Server name to use for server certificate validation. If it is not provided, the hostname used to contact the server is used' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from repair" -l proxy-url -d 'URL of the proxy to use for requests to the server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from repair" -s y -l yes -d 'Skip confirmation'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from repair" -l insecure-skip-tls-verify -d 'If true, the server\'s certificate will not be checked for validity. This will make your HTTPS connections insecure'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from repair" -l disable-compression -d 'If true, opt-out of response compression for all requests to the server'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from repair" -s h -l help -d 'Print help'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from prune" -l dry-run -d 'Must be "none", "client", or "server". If client, only print what would be done, without sending it; this is the default if no value is given. If server, submit server-side requests without persisting anything' -r -f -a "none\t''
client\t''
server\t''"
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from prune" -l field-manager -d 'Name of the manager used to track field ownership' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from prune" -l kubeconfig -d 'Path to the kubeconfig file to use for CLI requests' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from prune" -l context -d 'The name of the kubeconfig context to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from prune" -l cluster -d 'The name of the kubeconfig cluster to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from prune" -l user -d 'The name of the kubeconfig user to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from prune" -s n -l namespace -d 'If present, the namespace scope for this CLI request' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from prune" -l request-timeout -d 'The length of time to wait before giving up on a single server request, such as 500ms, 30s or 2m. A value of zero means don\'t timeout requests' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from prune" -l as -d 'Username to impersonate for the operation. User could be a regular user or a service account in a namespace' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from prune" -l as-group -d 'Group to impersonate for the operation, this flag can be repeated to specify multiple groups' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from prune" -l as-uid -d 'UID to impersonate for the operation' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from prune" -l as-user-extra -d 'User extras to impersonate for the operation, as KEY=VALUE. This flag can be repeated to specify multiple values for the same key' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from prune" -s s -l server -d 'The address and port of the Kubernetes API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from prune" -l token -d 'Bearer token for authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from prune" -l username -d 'Username for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from prune" -l password -d 'Password for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from prune" -l certificate-authority -d 'Path to a cert file for the certificate authority' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from prune" -l client-certificate -d 'Path to a client certificate file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from prune" -l client-key -d 'Path to a client key file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from prune" -l tls-server-name -d 'Server name to use for server certificate validation. If it is not provided, the hostname used to contact the server is used' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from prune" -l proxy-url -d 'URL of the proxy to use for requests to the server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from prune" -s y -l yes -d 'Skip confirmation'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from prune" -l insecure-skip-tls-verify -d 'If true, the server\'s certificate will not be checked for validity. This will make your HTTPS connections insecure'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from prune" -l disable-compression -d 'If true, opt-out of response compression for all requests to the server'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand candidates; and __fish_seen_subcommand_from prune" -s h -l help -d 'Print help'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand leaders" -s o -l output -d 'Output format. One of: (table, wide, json, yaml, name)' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand leaders" -s l -l selector -d 'Selector (label query) to filter on, supports \'=\', \'==\', and \'!=\' (e.g. -l key1=value1,key2=value2)' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand leaders" -l field-selector -d 'Selector (field query) to filter on, supports \'=\', \'==\', and \'!=\' (e.g. --field-selector metadata.name=x)' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand leaders" -l kubeconfig -d 'Path to the kubeconfig file to use for CLI requests' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand leaders" -l context -d 'The name of the kubeconfig context to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand leaders" -l cluster -d 'The name of the kubeconfig cluster to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand leaders" -l user -d 'The name of the kubeconfig user to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand leaders" -s n -l namespace -d 'If present, the namespace scope for this CLI request' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand leaders" -l request-timeout -d 'The length of time to wait before giving up on a single server request, such as 500ms, 30s or 2m. A value of zero means don\'t timeout requests' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand leaders" -l as -d 'Username to impersonate for the operation. User could be a regular user or a service account in a namespace' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand leaders" -l as-group -d 'Group to impersonate for the operation, this flag can be repeated to specify multiple groups' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand leaders" -l as-uid -d 'UID to impersonate for the operation' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand leaders" -l as-user-extra -d 'User extras to impersonate for the operation, as KEY=VALUE. This flag can be repeated to specify multiple values for the same key' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand leaders" -s s -l server -d 'The address and port of the Kubernetes API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand leaders" -l token -d 'Bearer token for authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand leaders" -l username -d 'Username for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand leaders" -l password -d 'Password for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand leaders" -l certificate-authority -d 'Path to a cert file for the certificate authority' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand leaders" -l client-certificate -d 'Path to a client certificate file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand leaders" -l client-key -d 'Path to a client key file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand leaders" -l tls-server-name -d 'Server name to use for server certificate validation. If it is not provided, the hostname used to contact the server is used' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand leaders" -l proxy-url -d 'URL of the proxy to use for requests to the server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand leaders" -l exit-code -d 'Exit with code 4 if a listed lease has no valid leader: expired, released, ghost or unknown'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand leaders" -s A -l all-namespaces -d 'List the requested objects across all namespaces, even if one is given with --namespace. This is the default without --namespace'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand leaders" -s w -l watch -d 'After listing the requested objects, watch for changes'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand leaders" -l no-headers -d 'When using the table or wide output format, don\'t print headers'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand leaders" -l insecure-skip-tls-verify -d 'If true, the server\'s certificate will not be checked for validity. This will make your HTTPS connections insecure'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand leaders" -l disable-compression -d 'If true, opt-out of response compression for all requests to the server'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand leaders" -s h -l help -d 'Print help'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and not __fish_seen_subcommand_from acquire renew release status list run" -l kubeconfig -d 'Path to the kubeconfig file to use for CLI requests' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and not __fish_seen_subcommand_from acquire renew release status list run" -l context -d 'The name of the kubeconfig context to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and not __fish_seen_subcommand_from acquire renew release status list run" -l cluster -d 'The name of the kubeconfig cluster to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and not __fish_seen_subcommand_from acquire renew release status list run" -l user -d 'The name of the kubeconfig user to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and not __fish_seen_subcommand_from acquire renew release status list run" -s n -l namespace -d 'If present, the namespace scope for this CLI request' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and not __fish_seen_subcommand_from acquire renew release status list run" -l request-timeout -d 'The length of time to wait before giving up on a single server request, such as 500ms, 30s or 2m. A value of zero means don\'t timeout requests' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and not __fish_seen_subcommand_from acquire renew release status list run" -l as -d 'Username to impersonate for the operation. User could be a regular user or a service account in a namespace' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and not __fish_seen_subcommand_from acquire renew release status list run" -l as-group -d 'Group to impersonate for the operation, this flag can be repeated to specify multiple groups' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and not __fish_seen_subcommand_from acquire renew release status list run" -l as-uid -d 'UID to impersonate for the operation' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and not __fish_seen_subcommand_from acquire renew release status list run" -l as-user-extra -d 'User extras to impersonate for the operation, as KEY=VALUE. This flag can be repeated to specify multiple values for the same key' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and not __fish_seen_subcommand_from acquire renew release status list run" -s s -l server -d 'The address and port of the Kubernetes API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and not __fish_seen_subcommand_from acquire renew release status list run" -l token -d 'Bearer token for authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and not __fish_seen_subcommand_from acquire renew release status list run" -l username -d 'Username for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and not __fish_seen_subcommand_from acquire renew release status list run" -l password -d 'Password for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and not __fish_seen_subcommand_from acquire renew release status list run" -l certificate-authority -d 'Path to a cert file for the certificate authority' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and not __fish_seen_subcommand_from acquire renew release status list run" -l client-certificate -d 'Path to a client certificate file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and not __fish_seen_subcommand_from acquire renew release status list run" -l client-key -d 'Path to a client key file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and not __fish_seen_subcommand_from acquire renew release status list run" -l tls-server-name -d 'Server name to use for server certificate validation. If it is not provided, the hostname used to contact the server is used' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and not __fish_seen_subcommand_from acquire renew release status list run" -l proxy-url -d 'URL of the proxy to use for requests to the server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and not __fish_seen_subcommand_from acquire renew release status list run" -l insecure-skip-tls-verify -d 'If true, the server\'s certificate will not be checked for validity. This will make your HTTPS connections insecure'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and not __fish_seen_subcommand_from acquire renew release status list run" -l disable-compression -d 'If true, opt-out of response compression for all requests to the server'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and not __fish_seen_subcommand_from acquire renew release status list run" -s h -l help -d 'Print help'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and not __fish_seen_subcommand_from acquire renew release status list run" -f -a "acquire" -d 'Acquire the maintenance leases of nodes'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and not __fish_seen_subcommand_from acquire renew release status list run" -f -a "renew" -d 'Renew maintenance leases that you hold'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and not __fish_seen_subcommand_from acquire renew release status list run" -f -a "release" -d 'Release maintenance leases'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and not __fish_seen_subcommand_from acquire renew release status list run" -f -a "status" -d 'Show whether the maintenance leases of nodes are held'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and not __fish_seen_subcommand_from acquire renew release status list run" -f -a "list" -d 'List nodes and their maintenance leases'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and not __fish_seen_subcommand_from acquire renew release status list run" -f -a "run" -d 'Run a command while holding the maintenance leases of nodes'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from acquire" -s l -l selector -d 'Selector (label query) to select nodes by, supports \'=\', \'==\', and \'!=\' (e.g. -l key1=value1,key2=value2)' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from acquire" -s r -l reason -d 'Reason to record in the lease' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from acquire" -l wait -d 'Wait until the lease is free. Use --wait=DURATION to give up after that time' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from acquire" -l holder -d 'Holder identity to use instead of your user name, login and host name. Leases of this holder are treated as yours' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from acquire" -s d -l duration -d 'The length of time to hold the lease. At most 1h without --admin' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from acquire" -s o -l output -d 'Output format. One of: (json, yaml, name)' -r -f -a "json\t''
yaml\t''
name\t''"
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from acquire" -l dry-run -d 'Must be "none", "client", or "server". If client, only print what would be done, without sending it; this is the default if no value is given. If server, submit server-side requests without persisting anything' -r -f -a "none\t''
client\t''
server\t''"
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from acquire" -l field-manager -d 'Name of the manager used to track field ownership' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from acquire" -l kubeconfig -d 'Path to the kubeconfig file to use for CLI requests' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from acquire" -l context -d 'The name of the kubeconfig context to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from acquire" -l cluster -d 'The name of the kubeconfig cluster to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from acquire" -l user -d 'The name of the kubeconfig user to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from acquire" -s n -l namespace -d 'If present, the namespace scope for this CLI request' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from acquire" -l request-timeout -d 'The length of time to wait before giving up on a single server request, such as 500ms, 30s or 2m. A value of zero means don\'t timeout requests' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from acquire" -l as -d 'Username to impersonate for the operation. User could be a regular user or a service account in a namespace' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from acquire" -l as-group -d 'Group to impersonate for the operation, this flag can be repeated to specify multiple groups' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from acquire" -l as-uid -d 'UID to impersonate for the operation' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from acquire" -l as-user-extra -d 'User extras to impersonate for the operation, as KEY=VALUE. This flag can be repeated to specify multiple values for the same key' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from acquire" -s s -l server -d 'The address and port of the Kubernetes API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from acquire" -l token -d 'Bearer token for authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from acquire" -l username -d 'Username for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from acquire" -l password -d 'Password for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from acquire" -l certificate-authority -d 'Path to a cert file for the certificate authority' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from acquire" -l client-certificate -d 'Path to a client certificate file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from acquire" -l client-key -d 'Path to a client key file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from acquire" -l tls-server-name -d 'Server name to use for server certificate validation. If it is not provided, the hostname used to contact the server is used' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from acquire" -l proxy-url -d 'URL of the proxy to use for requests to the server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from acquire" -l all -d 'Select all nodes in the cluster'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from acquire" -s y -l yes -d 'Skip confirmation of replacing the reason of a lease that you hold already'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from acquire" -l take-malformed -d 'Take over a lease that has a holder but no renewTime or leaseDurationSeconds'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from acquire" -l ignore-medik8s -d 'Ignore leases of medik8s: also take a node that it is working on'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from acquire" -l admin -d 'Hold the lease as an administrator, until it is released'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from acquire" -l insecure-skip-tls-verify -d 'If true, the server\'s certificate will not be checked for validity. This will make your HTTPS connections insecure'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from acquire" -l disable-compression -d 'If true, opt-out of response compression for all requests to the server'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from acquire" -s h -l help -d 'Print help'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from renew" -s l -l selector -d 'Selector (label query) to select nodes by, supports \'=\', \'==\', and \'!=\' (e.g. -l key1=value1,key2=value2)' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from renew" -s d -l duration -d 'The length of time to hold the lease, from now. At most 1h without --admin' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from renew" -l holder -d 'Holder identity to use instead of your user name, login and host name. Leases of this holder are treated as yours' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from renew" -s o -l output -d 'Output format. One of: (json, yaml, name)' -r -f -a "json\t''
yaml\t''
name\t''"
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from renew" -l dry-run -d 'Must be "none", "client", or "server". If client, only print what would be done, without sending it; this is the default if no value is given. If server, submit server-side requests without persisting anything' -r -f -a "none\t''
client\t''
server\t''"
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from renew" -l field-manager -d 'Name of the manager used to track field ownership' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from renew" -l kubeconfig -d 'Path to the kubeconfig file to use for CLI requests' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from renew" -l context -d 'The name of the kubeconfig context to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from renew" -l cluster -d 'The name of the kubeconfig cluster to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from renew" -l user -d 'The name of the kubeconfig user to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from renew" -s n -l namespace -d 'If present, the namespace scope for this CLI request' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from renew" -l request-timeout -d 'The length of time to wait before giving up on a single server request, such as 500ms, 30s or 2m. A value of zero means don\'t timeout requests' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from renew" -l as -d 'Username to impersonate for the operation. User could be a regular user or a service account in a namespace' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from renew" -l as-group -d 'Group to impersonate for the operation, this flag can be repeated to specify multiple groups' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from renew" -l as-uid -d 'UID to impersonate for the operation' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from renew" -l as-user-extra -d 'User extras to impersonate for the operation, as KEY=VALUE. This flag can be repeated to specify multiple values for the same key' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from renew" -s s -l server -d 'The address and port of the Kubernetes API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from renew" -l token -d 'Bearer token for authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from renew" -l username -d 'Username for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from renew" -l password -d 'Password for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from renew" -l certificate-authority -d 'Path to a cert file for the certificate authority' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from renew" -l client-certificate -d 'Path to a client certificate file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from renew" -l client-key -d 'Path to a client key file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from renew" -l tls-server-name -d 'Server name to use for server certificate validation. If it is not provided, the hostname used to contact the server is used' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from renew" -l proxy-url -d 'URL of the proxy to use for requests to the server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from renew" -l all -d 'Select all nodes in the cluster'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from renew" -l admin -d 'Renew leases that you hold as an administrator'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from renew" -l insecure-skip-tls-verify -d 'If true, the server\'s certificate will not be checked for validity. This will make your HTTPS connections insecure'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from renew" -l disable-compression -d 'If true, opt-out of response compression for all requests to the server'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from renew" -s h -l help -d 'Print help'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from release" -s l -l selector -d 'Selector (label query) to select nodes by, supports \'=\', \'==\', and \'!=\' (e.g. -l key1=value1,key2=value2)' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from release" -l holder -d 'Holder identity to use instead of your user name, login and host name. Leases of this holder are treated as yours' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from release" -s o -l output -d 'Output format. One of: (json, yaml, name)' -r -f -a "json\t''
yaml\t''
name\t''"
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from release" -l dry-run -d 'Must be "none", "client", or "server". If client, only print what would be done, without sending it; this is the default if no value is given. If server, submit server-side requests without persisting anything' -r -f -a "none\t''
client\t''
server\t''"
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from release" -l field-manager -d 'Name of the manager used to track field ownership' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from release" -l kubeconfig -d 'Path to the kubeconfig file to use for CLI requests' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from release" -l context -d 'The name of the kubeconfig context to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from release" -l cluster -d 'The name of the kubeconfig cluster to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from release" -l user -d 'The name of the kubeconfig user to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from release" -s n -l namespace -d 'If present, the namespace scope for this CLI request' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from release" -l request-timeout -d 'The length of time to wait before giving up on a single server request, such as 500ms, 30s or 2m. A value of zero means don\'t timeout requests' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from release" -l as -d 'Username to impersonate for the operation. User could be a regular user or a service account in a namespace' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from release" -l as-group -d 'Group to impersonate for the operation, this flag can be repeated to specify multiple groups' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from release" -l as-uid -d 'UID to impersonate for the operation' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from release" -l as-user-extra -d 'User extras to impersonate for the operation, as KEY=VALUE. This flag can be repeated to specify multiple values for the same key' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from release" -s s -l server -d 'The address and port of the Kubernetes API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from release" -l token -d 'Bearer token for authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from release" -l username -d 'Username for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from release" -l password -d 'Password for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from release" -l certificate-authority -d 'Path to a cert file for the certificate authority' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from release" -l client-certificate -d 'Path to a client certificate file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from release" -l client-key -d 'Path to a client key file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from release" -l tls-server-name -d 'Server name to use for server certificate validation. If it is not provided, the hostname used to contact the server is used' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from release" -l proxy-url -d 'URL of the proxy to use for requests to the server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from release" -l all -d 'Select all nodes in the cluster'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from release" -l force -d 'Release leases of other holders'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from release" -l confirm -d 'Skip confirmation of --force. Required if there is no terminal to ask on'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from release" -l admin -d 'Release leases that are held by an administrator'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from release" -l insecure-skip-tls-verify -d 'If true, the server\'s certificate will not be checked for validity. This will make your HTTPS connections insecure'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from release" -l disable-compression -d 'If true, opt-out of response compression for all requests to the server'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from release" -s h -l help -d 'Print help'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from status" -s l -l selector -d 'Selector (label query) to select nodes by, supports \'=\', \'==\', and \'!=\' (e.g. -l key1=value1,key2=value2)' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from status" -s o -l output -d 'Output format. One of: (table, wide, json, yaml, name)' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from status" -l holder -d 'Holder identity to use instead of your user name, login and host name. Leases of this holder are treated as yours' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from status" -l kubeconfig -d 'Path to the kubeconfig file to use for CLI requests' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from status" -l context -d 'The name of the kubeconfig context to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from status" -l cluster -d 'The name of the kubeconfig cluster to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from status" -l user -d 'The name of the kubeconfig user to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from status" -s n -l namespace -d 'If present, the namespace scope for this CLI request' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from status" -l request-timeout -d 'The length of time to wait before giving up on a single server request, such as 500ms, 30s or 2m. A value of zero means don\'t timeout requests' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from status" -l as -d 'Username to impersonate for the operation. User could be a regular user or a service account in a namespace' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from status" -l as-group -d 'Group to impersonate for the operation, this flag can be repeated to specify multiple groups' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from status" -l as-uid -d 'UID to impersonate for the operation' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from status" -l as-user-extra -d 'User extras to impersonate for the operation, as KEY=VALUE. This flag can be repeated to specify multiple values for the same key' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from status" -s s -l server -d 'The address and port of the Kubernetes API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from status" -l token -d 'Bearer token for authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from status" -l username -d 'Username for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from status" -l password -d 'Password for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from status" -l certificate-authority -d 'Path to a cert file for the certificate authority' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from status" -l client-certificate -d 'Path to a client certificate file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from status" -l client-key -d 'Path to a client key file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from status" -l tls-server-name -d 'Server name to use for server certificate validation. If it is not provided, the hostname used to contact the server is used' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from status" -l proxy-url -d 'URL of the proxy to use for requests to the server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from status" -l all -d 'Select all nodes in the cluster'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from status" -l no-headers -d 'When using the table or wide output format, don\'t print headers'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from status" -l insecure-skip-tls-verify -d 'If true, the server\'s certificate will not be checked for validity. This will make your HTTPS connections insecure'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from status" -l disable-compression -d 'If true, opt-out of response compression for all requests to the server'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from status" -s h -l help -d 'Print help'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from list" -s o -l output -d 'Output format. One of: (table, wide, json, yaml, name)' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from list" -s l -l selector -d 'Selector (label query) to filter on, supports \'=\', \'==\', and \'!=\' (e.g. -l key1=value1,key2=value2)' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from list" -l field-selector -d 'Selector (field query) to filter on, supports \'=\', \'==\', and \'!=\' (e.g. --field-selector metadata.name=x)' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from list" -l holder -d 'Holder identity to use instead of your user name, login and host name. Leases of this holder are treated as yours' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from list" -l kubeconfig -d 'Path to the kubeconfig file to use for CLI requests' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from list" -l context -d 'The name of the kubeconfig context to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from list" -l cluster -d 'The name of the kubeconfig cluster to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from list" -l user -d 'The name of the kubeconfig user to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from list" -s n -l namespace -d 'If present, the namespace scope for this CLI request' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from list" -l request-timeout -d 'The length of time to wait before giving up on a single server request, such as 500ms, 30s or 2m. A value of zero means don\'t timeout requests' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from list" -l as -d 'Username to impersonate for the operation. User could be a regular user or a service account in a namespace' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from list" -l as-group -d 'Group to impersonate for the operation, this flag can be repeated to specify multiple groups' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from list" -l as-uid -d 'UID to impersonate for the operation' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from list" -l as-user-extra -d 'User extras to impersonate for the operation, as KEY=VALUE. This flag can be repeated to specify multiple values for the same key' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from list" -s s -l server -d 'The address and port of the Kubernetes API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from list" -l token -d 'Bearer token for authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from list" -l username -d 'Username for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from list" -l password -d 'Password for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from list" -l certificate-authority -d 'Path to a cert file for the certificate authority' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from list" -l client-certificate -d 'Path to a client certificate file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from list" -l client-key -d 'Path to a client key file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from list" -l tls-server-name -d 'Server name to use for server certificate validation. If it is not provided, the hostname used to contact the server is used' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from list" -l proxy-url -d 'URL of the proxy to use for requests to the server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from list" -l abandoned -d 'Only list leases that look abandoned: expired without a release, held for over an hour without a renewal, held by an administrator for over a day, without the times to judge them by, or of a node that was deleted'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from list" -l held -d 'Only list nodes that are held'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from list" -l mine -d 'Only list nodes that you hold, also by \'maint run\' and where the lease has expired'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from list" -l exit-code -d 'Exit with code 4 if leases are listed that look abandoned'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from list" -s w -l watch -d 'After listing the requested objects, watch for changes'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from list" -l no-headers -d 'When using the table or wide output format, don\'t print headers'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from list" -l insecure-skip-tls-verify -d 'If true, the server\'s certificate will not be checked for validity. This will make your HTTPS connections insecure'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from list" -l disable-compression -d 'If true, opt-out of response compression for all requests to the server'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from run" -s l -l selector -d 'Selector (label query) to select nodes by, supports \'=\', \'==\', and \'!=\' (e.g. -l key1=value1,key2=value2)' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from run" -s r -l reason -d 'Reason to record in the lease' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from run" -l wait -d 'Wait until the lease is free. Use --wait=DURATION to give up after that time' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from run" -l holder -d 'Holder identity to use instead of your user name, login and host name. Leases of this holder are treated as yours' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from run" -s d -l duration -d 'Duration of the lease, which is renewed while the command runs: the length of time that others wait if this machine fails' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from run" -l dry-run -d 'Must be "none", "client", or "server". If client, only print what would be done, without sending it; this is the default if no value is given. If server, submit server-side requests without persisting anything' -r -f -a "none\t''
client\t''
server\t''"
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from run" -l kubeconfig -d 'Path to the kubeconfig file to use for CLI requests' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from run" -l context -d 'The name of the kubeconfig context to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from run" -l cluster -d 'The name of the kubeconfig cluster to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from run" -l user -d 'The name of the kubeconfig user to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from run" -s n -l namespace -d 'If present, the namespace scope for this CLI request' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from run" -l request-timeout -d 'The length of time to wait before giving up on a single server request, such as 500ms, 30s or 2m. A value of zero means don\'t timeout requests' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from run" -l as -d 'Username to impersonate for the operation. User could be a regular user or a service account in a namespace' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from run" -l as-group -d 'Group to impersonate for the operation, this flag can be repeated to specify multiple groups' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from run" -l as-uid -d 'UID to impersonate for the operation' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from run" -l as-user-extra -d 'User extras to impersonate for the operation, as KEY=VALUE. This flag can be repeated to specify multiple values for the same key' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from run" -s s -l server -d 'The address and port of the Kubernetes API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from run" -l token -d 'Bearer token for authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from run" -l username -d 'Username for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from run" -l password -d 'Password for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from run" -l certificate-authority -d 'Path to a cert file for the certificate authority' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from run" -l client-certificate -d 'Path to a client certificate file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from run" -l client-key -d 'Path to a client key file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from run" -l tls-server-name -d 'Server name to use for server certificate validation. If it is not provided, the hostname used to contact the server is used' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from run" -l proxy-url -d 'URL of the proxy to use for requests to the server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from run" -l all -d 'Select all nodes in the cluster'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from run" -s y -l yes -d 'Skip confirmation of replacing the reason of a lease that you hold already'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from run" -l take-malformed -d 'Take over a lease that has a holder but no renewTime or leaseDurationSeconds'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from run" -l ignore-medik8s -d 'Ignore leases of medik8s: also take a node that it is working on'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from run" -l admin -d 'Also take over leases that you hold as an administrator, and give them back'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from run" -l insecure-skip-tls-verify -d 'If true, the server\'s certificate will not be checked for validity. This will make your HTTPS connections insecure'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from run" -l disable-compression -d 'If true, opt-out of response compression for all requests to the server'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand maint; and __fish_seen_subcommand_from run" -s h -l help -d 'Print help'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand hold" -s d -l duration -d 'Duration of the lease, which is renewed while the command runs: the length of time that others wait if this machine fails' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand hold" -l wait -d 'Wait until the lease is free. Use --wait=DURATION to give up after that time' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand hold" -l holder -d 'Holder identity to use instead of your user name, login and host name. Leases of this holder are treated as yours' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand hold" -l dry-run -d 'Must be "none", "client", or "server". If client, only print what would be done, without sending it; this is the default if no value is given. If server, submit server-side requests without persisting anything' -r -f -a "none\t''
client\t''
server\t''"
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand hold" -l kubeconfig -d 'Path to the kubeconfig file to use for CLI requests' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand hold" -l context -d 'The name of the kubeconfig context to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand hold" -l cluster -d 'The name of the kubeconfig cluster to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand hold" -l user -d 'The name of the kubeconfig user to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand hold" -s n -l namespace -d 'If present, the namespace scope for this CLI request' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand hold" -l request-timeout -d 'The length of time to wait before giving up on a single server request, such as 500ms, 30s or 2m. A value of zero means don\'t timeout requests' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand hold" -l as -d 'Username to impersonate for the operation. User could be a regular user or a service account in a namespace' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand hold" -l as-group -d 'Group to impersonate for the operation, this flag can be repeated to specify multiple groups' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand hold" -l as-uid -d 'UID to impersonate for the operation' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand hold" -l as-user-extra -d 'User extras to impersonate for the operation, as KEY=VALUE. This flag can be repeated to specify multiple values for the same key' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand hold" -s s -l server -d 'The address and port of the Kubernetes API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand hold" -l token -d 'Bearer token for authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand hold" -l username -d 'Username for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand hold" -l password -d 'Password for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand hold" -l certificate-authority -d 'Path to a cert file for the certificate authority' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand hold" -l client-certificate -d 'Path to a client certificate file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand hold" -l client-key -d 'Path to a client key file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand hold" -l tls-server-name -d 'Server name to use for server certificate validation. If it is not provided, the hostname used to contact the server is used' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand hold" -l proxy-url -d 'URL of the proxy to use for requests to the server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand hold" -l insecure-skip-tls-verify -d 'If true, the server\'s certificate will not be checked for validity. This will make your HTTPS connections insecure'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand hold" -l disable-compression -d 'If true, opt-out of response compression for all requests to the server'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand hold" -s h -l help -d 'Print help'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand partitions" -s o -l output -d 'Output format. One of: (table, wide, json, yaml, name)' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand partitions" -s l -l selector -d 'Selector (label query) to filter on, supports \'=\', \'==\', and \'!=\' (e.g. -l key1=value1,key2=value2)' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand partitions" -l field-selector -d 'Selector (field query) to filter on, supports \'=\', \'==\', and \'!=\' (e.g. --field-selector metadata.name=x)' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand partitions" -l kubeconfig -d 'Path to the kubeconfig file to use for CLI requests' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand partitions" -l context -d 'The name of the kubeconfig context to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand partitions" -l cluster -d 'The name of the kubeconfig cluster to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand partitions" -l user -d 'The name of the kubeconfig user to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand partitions" -s n -l namespace -d 'If present, the namespace scope for this CLI request' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand partitions" -l request-timeout -d 'The length of time to wait before giving up on a single server request, such as 500ms, 30s or 2m. A value of zero means don\'t timeout requests' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand partitions" -l as -d 'Username to impersonate for the operation. User could be a regular user or a service account in a namespace' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand partitions" -l as-group -d 'Group to impersonate for the operation, this flag can be repeated to specify multiple groups' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand partitions" -l as-uid -d 'UID to impersonate for the operation' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand partitions" -l as-user-extra -d 'User extras to impersonate for the operation, as KEY=VALUE. This flag can be repeated to specify multiple values for the same key' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand partitions" -s s -l server -d 'The address and port of the Kubernetes API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand partitions" -l token -d 'Bearer token for authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand partitions" -l username -d 'Username for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand partitions" -l password -d 'Password for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand partitions" -l certificate-authority -d 'Path to a cert file for the certificate authority' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand partitions" -l client-certificate -d 'Path to a client certificate file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand partitions" -l client-key -d 'Path to a client key file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand partitions" -l tls-server-name -d 'Server name to use for server certificate validation. If it is not provided, the hostname used to contact the server is used' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand partitions" -l proxy-url -d 'URL of the proxy to use for requests to the server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand partitions" -l exit-code -d 'Exit with code 4 if there are partitions'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand partitions" -s w -l watch -d 'After listing the requested objects, watch for changes'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand partitions" -l no-headers -d 'When using the table or wide output format, don\'t print headers'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand partitions" -l insecure-skip-tls-verify -d 'If true, the server\'s certificate will not be checked for validity. This will make your HTTPS connections insecure'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand partitions" -l disable-compression -d 'If true, opt-out of response compression for all requests to the server'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand partitions" -s h -l help -d 'Print help'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand force-delete" -s l -l selector -d 'Selector (label query) to select pods of the namespace by, supports \'=\', \'==\', and \'!=\' (e.g. -l key1=value1,key2=value2)' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand force-delete" -l node -d 'Select all pods that are stranded or stuck on this node, in all namespaces, or with -n in that one' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand force-delete" -s r -l reason -d 'Reason to record in the Event' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand force-delete" -l wait -d 'Wait until the pod is gone and its replacement is ready. Use --wait=DURATION to give up after that time' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand force-delete" -s o -l output -d 'Output format. One of: (json, yaml, name)' -r -f -a "json\t''
yaml\t''
name\t''"
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand force-delete" -l dry-run -d 'Must be "none", "client", or "server". If client, only print what would be done, without sending it; this is the default if no value is given. If server, submit server-side requests without persisting anything' -r -f -a "none\t''
client\t''
server\t''"
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand force-delete" -l field-manager -d 'Name of the manager used to track field ownership' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand force-delete" -l kubeconfig -d 'Path to the kubeconfig file to use for CLI requests' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand force-delete" -l context -d 'The name of the kubeconfig context to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand force-delete" -l cluster -d 'The name of the kubeconfig cluster to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand force-delete" -l user -d 'The name of the kubeconfig user to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand force-delete" -s n -l namespace -d 'If present, the namespace scope for this CLI request' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand force-delete" -l request-timeout -d 'The length of time to wait before giving up on a single server request, such as 500ms, 30s or 2m. A value of zero means don\'t timeout requests' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand force-delete" -l as -d 'Username to impersonate for the operation. User could be a regular user or a service account in a namespace' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand force-delete" -l as-group -d 'Group to impersonate for the operation, this flag can be repeated to specify multiple groups' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand force-delete" -l as-uid -d 'UID to impersonate for the operation' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand force-delete" -l as-user-extra -d 'User extras to impersonate for the operation, as KEY=VALUE. This flag can be repeated to specify multiple values for the same key' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand force-delete" -s s -l server -d 'The address and port of the Kubernetes API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand force-delete" -l token -d 'Bearer token for authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand force-delete" -l username -d 'Username for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand force-delete" -l password -d 'Password for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand force-delete" -l certificate-authority -d 'Path to a cert file for the certificate authority' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand force-delete" -l client-certificate -d 'Path to a client certificate file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand force-delete" -l client-key -d 'Path to a client key file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand force-delete" -l tls-server-name -d 'Server name to use for server certificate validation. If it is not provided, the hostname used to contact the server is used' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand force-delete" -l proxy-url -d 'URL of the proxy to use for requests to the server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand force-delete" -l safe -d 'Use the safest alternative to force, and wait until it takes effect: evict the pod, delete it with its grace period, or wait for pod GC'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand force-delete" -l confirm -d 'Skip confirmation. Required if there is no terminal to ask on'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand force-delete" -l i-have-fenced -d 'With --confirm, continue even at a critical risk: the machine is off, or cut off from all storage and networks that it shares'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand force-delete" -l anyway -d 'Continue even if force has no effect (finalizers keep the object, or it is a mirror pod), if a disruption budget allows no disruptions, or, with several pods, if their disruption budgets cannot be read'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand force-delete" -l insecure-skip-tls-verify -d 'If true, the server\'s certificate will not be checked for validity. This will make your HTTPS connections insecure'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand force-delete" -l disable-compression -d 'If true, opt-out of response compression for all requests to the server'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand force-delete" -s h -l help -d 'Print help'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand fence" -s r -l reason -d 'Reason to record in the lease and in the Event' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand fence" -l wait -d 'Wait until the pods on the node are deleted. Use --wait=DURATION to give up after that time' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand fence" -l holder -d 'Holder identity to use instead of your user name, login and host name. Leases of this holder are treated as yours' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand fence" -l dry-run -d 'Must be "none", "client", or "server". If client, only print what would be done, without sending it; this is the default if no value is given. If server, submit server-side requests without persisting anything' -r -f -a "none\t''
client\t''
server\t''"
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand fence" -l field-manager -d 'Name of the manager used to track field ownership' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand fence" -l kubeconfig -d 'Path to the kubeconfig file to use for CLI requests' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand fence" -l context -d 'The name of the kubeconfig context to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand fence" -l cluster -d 'The name of the kubeconfig cluster to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand fence" -l user -d 'The name of the kubeconfig user to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand fence" -s n -l namespace -d 'If present, the namespace scope for this CLI request' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand fence" -l request-timeout -d 'The length of time to wait before giving up on a single server request, such as 500ms, 30s or 2m. A value of zero means don\'t timeout requests' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand fence" -l as -d 'Username to impersonate for the operation. User could be a regular user or a service account in a namespace' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand fence" -l as-group -d 'Group to impersonate for the operation, this flag can be repeated to specify multiple groups' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand fence" -l as-uid -d 'UID to impersonate for the operation' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand fence" -l as-user-extra -d 'User extras to impersonate for the operation, as KEY=VALUE. This flag can be repeated to specify multiple values for the same key' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand fence" -s s -l server -d 'The address and port of the Kubernetes API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand fence" -l token -d 'Bearer token for authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand fence" -l username -d 'Username for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand fence" -l password -d 'Password for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand fence" -l certificate-authority -d 'Path to a cert file for the certificate authority' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand fence" -l client-certificate -d 'Path to a client certificate file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand fence" -l client-key -d 'Path to a client key file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand fence" -l tls-server-name -d 'Server name to use for server certificate validation. If it is not provided, the hostname used to contact the server is used' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand fence" -l proxy-url -d 'URL of the proxy to use for requests to the server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand fence" -l undo -d 'Remove the taint, to put the node back into service'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand fence" -l confirm -d 'Skip confirmation: the machine is off. Required if there is no terminal to ask on'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand fence" -l i-have-fenced -d 'With --confirm, continue even if pods on the node are at critical risk or volumes are attached: the machine is off, or cut off from all storage and networks that it shares'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand fence" -l take-malformed -d 'Take over a lease that has a holder but no renewTime or leaseDurationSeconds'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand fence" -l ignore-medik8s -d 'Ignore leases of medik8s: also take a node that it is working on'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand fence" -l insecure-skip-tls-verify -d 'If true, the server\'s certificate will not be checked for validity. This will make your HTTPS connections insecure'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand fence" -l disable-compression -d 'If true, opt-out of response compression for all requests to the server'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand fence" -s h -l help -d 'Print help'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand doctor" -s o -l output -d 'Output format. One of: (table, wide, json, yaml, name)' -r -f -a "table\t''
wide\t''
json\t''
yaml\t''
name\t''"
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand doctor" -l print -d 'Print manifests for an administrator to apply, without contacting the cluster. One of: (rbac, guard). rbac has the namespace of maintenance leases and a role for each command; guard has the admission policies that reserve the holder prefix \'kubeadm\' for administrators' -r -f -a "rbac\t'The namespace of maintenance leases, and a role for each command'
guard\t'The admission policies that reserve the holder prefix \'kubeadm\' for administrators'"
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand doctor" -l kubeconfig -d 'Path to the kubeconfig file to use for CLI requests' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand doctor" -l context -d 'The name of the kubeconfig context to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand doctor" -l cluster -d 'The name of the kubeconfig cluster to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand doctor" -l user -d 'The name of the kubeconfig user to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand doctor" -s n -l namespace -d 'If present, the namespace scope for this CLI request' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand doctor" -l request-timeout -d 'The length of time to wait before giving up on a single server request, such as 500ms, 30s or 2m. A value of zero means don\'t timeout requests' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand doctor" -l as -d 'Username to impersonate for the operation. User could be a regular user or a service account in a namespace' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand doctor" -l as-group -d 'Group to impersonate for the operation, this flag can be repeated to specify multiple groups' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand doctor" -l as-uid -d 'UID to impersonate for the operation' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand doctor" -l as-user-extra -d 'User extras to impersonate for the operation, as KEY=VALUE. This flag can be repeated to specify multiple values for the same key' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand doctor" -s s -l server -d 'The address and port of the Kubernetes API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand doctor" -l token -d 'Bearer token for authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand doctor" -l username -d 'Username for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand doctor" -l password -d 'Password for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand doctor" -l certificate-authority -d 'Path to a cert file for the certificate authority' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand doctor" -l client-certificate -d 'Path to a client certificate file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand doctor" -l client-key -d 'Path to a client key file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand doctor" -l tls-server-name -d 'Server name to use for server certificate validation. If it is not provided, the hostname used to contact the server is used' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand doctor" -l proxy-url -d 'URL of the proxy to use for requests to the server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand doctor" -l clocks -d 'Compare the clocks of all kube-apiservers by their renewals, which takes up to 12 seconds'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand doctor" -l no-headers -d 'When using the table or wide output format, don\'t print headers'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand doctor" -l insecure-skip-tls-verify -d 'If true, the server\'s certificate will not be checked for validity. This will make your HTTPS connections insecure'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand doctor" -l disable-compression -d 'If true, opt-out of response compression for all requests to the server'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand doctor" -s h -l help -d 'Print help'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and not __fish_seen_subcommand_from bash zsh fish powershell install" -l kubeconfig -d 'Path to the kubeconfig file to use for CLI requests' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and not __fish_seen_subcommand_from bash zsh fish powershell install" -l context -d 'The name of the kubeconfig context to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and not __fish_seen_subcommand_from bash zsh fish powershell install" -l cluster -d 'The name of the kubeconfig cluster to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and not __fish_seen_subcommand_from bash zsh fish powershell install" -l user -d 'The name of the kubeconfig user to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and not __fish_seen_subcommand_from bash zsh fish powershell install" -s n -l namespace -d 'If present, the namespace scope for this CLI request' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and not __fish_seen_subcommand_from bash zsh fish powershell install" -l request-timeout -d 'The length of time to wait before giving up on a single server request, such as 500ms, 30s or 2m. A value of zero means don\'t timeout requests' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and not __fish_seen_subcommand_from bash zsh fish powershell install" -l as -d 'Username to impersonate for the operation. User could be a regular user or a service account in a namespace' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and not __fish_seen_subcommand_from bash zsh fish powershell install" -l as-group -d 'Group to impersonate for the operation, this flag can be repeated to specify multiple groups' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and not __fish_seen_subcommand_from bash zsh fish powershell install" -l as-uid -d 'UID to impersonate for the operation' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and not __fish_seen_subcommand_from bash zsh fish powershell install" -l as-user-extra -d 'User extras to impersonate for the operation, as KEY=VALUE. This flag can be repeated to specify multiple values for the same key' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and not __fish_seen_subcommand_from bash zsh fish powershell install" -s s -l server -d 'The address and port of the Kubernetes API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and not __fish_seen_subcommand_from bash zsh fish powershell install" -l token -d 'Bearer token for authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and not __fish_seen_subcommand_from bash zsh fish powershell install" -l username -d 'Username for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and not __fish_seen_subcommand_from bash zsh fish powershell install" -l password -d 'Password for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and not __fish_seen_subcommand_from bash zsh fish powershell install" -l certificate-authority -d 'Path to a cert file for the certificate authority' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and not __fish_seen_subcommand_from bash zsh fish powershell install" -l client-certificate -d 'Path to a client certificate file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and not __fish_seen_subcommand_from bash zsh fish powershell install" -l client-key -d 'Path to a client key file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and not __fish_seen_subcommand_from bash zsh fish powershell install" -l tls-server-name -d 'Server name to use for server certificate validation. If it is not provided, the hostname used to contact the server is used' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and not __fish_seen_subcommand_from bash zsh fish powershell install" -l proxy-url -d 'URL of the proxy to use for requests to the server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and not __fish_seen_subcommand_from bash zsh fish powershell install" -l insecure-skip-tls-verify -d 'If true, the server\'s certificate will not be checked for validity. This will make your HTTPS connections insecure'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and not __fish_seen_subcommand_from bash zsh fish powershell install" -l disable-compression -d 'If true, opt-out of response compression for all requests to the server'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and not __fish_seen_subcommand_from bash zsh fish powershell install" -s h -l help -d 'Print help'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and not __fish_seen_subcommand_from bash zsh fish powershell install" -f -a "bash" -d 'Output completion code for bash'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and not __fish_seen_subcommand_from bash zsh fish powershell install" -f -a "zsh" -d 'Output completion code for zsh'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and not __fish_seen_subcommand_from bash zsh fish powershell install" -f -a "fish" -d 'Output completion code for fish'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and not __fish_seen_subcommand_from bash zsh fish powershell install" -f -a "powershell" -d 'Output completion code for PowerShell'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and not __fish_seen_subcommand_from bash zsh fish powershell install" -f -a "install" -d 'Install completion for \'kubectl lease\''
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from bash" -l kubeconfig -d 'Path to the kubeconfig file to use for CLI requests' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from bash" -l context -d 'The name of the kubeconfig context to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from bash" -l cluster -d 'The name of the kubeconfig cluster to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from bash" -l user -d 'The name of the kubeconfig user to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from bash" -s n -l namespace -d 'If present, the namespace scope for this CLI request' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from bash" -l request-timeout -d 'The length of time to wait before giving up on a single server request, such as 500ms, 30s or 2m. A value of zero means don\'t timeout requests' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from bash" -l as -d 'Username to impersonate for the operation. User could be a regular user or a service account in a namespace' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from bash" -l as-group -d 'Group to impersonate for the operation, this flag can be repeated to specify multiple groups' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from bash" -l as-uid -d 'UID to impersonate for the operation' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from bash" -l as-user-extra -d 'User extras to impersonate for the operation, as KEY=VALUE. This flag can be repeated to specify multiple values for the same key' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from bash" -s s -l server -d 'The address and port of the Kubernetes API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from bash" -l token -d 'Bearer token for authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from bash" -l username -d 'Username for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from bash" -l password -d 'Password for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from bash" -l certificate-authority -d 'Path to a cert file for the certificate authority' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from bash" -l client-certificate -d 'Path to a client certificate file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from bash" -l client-key -d 'Path to a client key file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from bash" -l tls-server-name -d 'Server name to use for server certificate validation. If it is not provided, the hostname used to contact the server is used' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from bash" -l proxy-url -d 'URL of the proxy to use for requests to the server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from bash" -l insecure-skip-tls-verify -d 'If true, the server\'s certificate will not be checked for validity. This will make your HTTPS connections insecure'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from bash" -l disable-compression -d 'If true, opt-out of response compression for all requests to the server'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from bash" -s h -l help -d 'Print help'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from zsh" -l kubeconfig -d 'Path to the kubeconfig file to use for CLI requests' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from zsh" -l context -d 'The name of the kubeconfig context to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from zsh" -l cluster -d 'The name of the kubeconfig cluster to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from zsh" -l user -d 'The name of the kubeconfig user to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from zsh" -s n -l namespace -d 'If present, the namespace scope for this CLI request' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from zsh" -l request-timeout -d 'The length of time to wait before giving up on a single server request, such as 500ms, 30s or 2m. A value of zero means don\'t timeout requests' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from zsh" -l as -d 'Username to impersonate for the operation. User could be a regular user or a service account in a namespace' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from zsh" -l as-group -d 'Group to impersonate for the operation, this flag can be repeated to specify multiple groups' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from zsh" -l as-uid -d 'UID to impersonate for the operation' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from zsh" -l as-user-extra -d 'User extras to impersonate for the operation, as KEY=VALUE. This flag can be repeated to specify multiple values for the same key' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from zsh" -s s -l server -d 'The address and port of the Kubernetes API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from zsh" -l token -d 'Bearer token for authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from zsh" -l username -d 'Username for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from zsh" -l password -d 'Password for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from zsh" -l certificate-authority -d 'Path to a cert file for the certificate authority' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from zsh" -l client-certificate -d 'Path to a client certificate file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from zsh" -l client-key -d 'Path to a client key file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from zsh" -l tls-server-name -d 'Server name to use for server certificate validation. If it is not provided, the hostname used to contact the server is used' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from zsh" -l proxy-url -d 'URL of the proxy to use for requests to the server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from zsh" -l insecure-skip-tls-verify -d 'If true, the server\'s certificate will not be checked for validity. This will make your HTTPS connections insecure'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from zsh" -l disable-compression -d 'If true, opt-out of response compression for all requests to the server'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from zsh" -s h -l help -d 'Print help'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from fish" -l kubeconfig -d 'Path to the kubeconfig file to use for CLI requests' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from fish" -l context -d 'The name of the kubeconfig context to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from fish" -l cluster -d 'The name of the kubeconfig cluster to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from fish" -l user -d 'The name of the kubeconfig user to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from fish" -s n -l namespace -d 'If present, the namespace scope for this CLI request' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from fish" -l request-timeout -d 'The length of time to wait before giving up on a single server request, such as 500ms, 30s or 2m. A value of zero means don\'t timeout requests' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from fish" -l as -d 'Username to impersonate for the operation. User could be a regular user or a service account in a namespace' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from fish" -l as-group -d 'Group to impersonate for the operation, this flag can be repeated to specify multiple groups' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from fish" -l as-uid -d 'UID to impersonate for the operation' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from fish" -l as-user-extra -d 'User extras to impersonate for the operation, as KEY=VALUE. This flag can be repeated to specify multiple values for the same key' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from fish" -s s -l server -d 'The address and port of the Kubernetes API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from fish" -l token -d 'Bearer token for authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from fish" -l username -d 'Username for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from fish" -l password -d 'Password for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from fish" -l certificate-authority -d 'Path to a cert file for the certificate authority' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from fish" -l client-certificate -d 'Path to a client certificate file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from fish" -l client-key -d 'Path to a client key file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from fish" -l tls-server-name -d 'Server name to use for server certificate validation. If it is not provided, the hostname used to contact the server is used' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from fish" -l proxy-url -d 'URL of the proxy to use for requests to the server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from fish" -l insecure-skip-tls-verify -d 'If true, the server\'s certificate will not be checked for validity. This will make your HTTPS connections insecure'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from fish" -l disable-compression -d 'If true, opt-out of response compression for all requests to the server'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from fish" -s h -l help -d 'Print help'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from powershell" -l kubeconfig -d 'Path to the kubeconfig file to use for CLI requests' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from powershell" -l context -d 'The name of the kubeconfig context to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from powershell" -l cluster -d 'The name of the kubeconfig cluster to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from powershell" -l user -d 'The name of the kubeconfig user to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from powershell" -s n -l namespace -d 'If present, the namespace scope for this CLI request' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from powershell" -l request-timeout -d 'The length of time to wait before giving up on a single server request, such as 500ms, 30s or 2m. A value of zero means don\'t timeout requests' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from powershell" -l as -d 'Username to impersonate for the operation. User could be a regular user or a service account in a namespace' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from powershell" -l as-group -d 'Group to impersonate for the operation, this flag can be repeated to specify multiple groups' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from powershell" -l as-uid -d 'UID to impersonate for the operation' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from powershell" -l as-user-extra -d 'User extras to impersonate for the operation, as KEY=VALUE. This flag can be repeated to specify multiple values for the same key' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from powershell" -s s -l server -d 'The address and port of the Kubernetes API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from powershell" -l token -d 'Bearer token for authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from powershell" -l username -d 'Username for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from powershell" -l password -d 'Password for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from powershell" -l certificate-authority -d 'Path to a cert file for the certificate authority' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from powershell" -l client-certificate -d 'Path to a client certificate file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from powershell" -l client-key -d 'Path to a client key file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from powershell" -l tls-server-name -d 'Server name to use for server certificate validation. If it is not provided, the hostname used to contact the server is used' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from powershell" -l proxy-url -d 'URL of the proxy to use for requests to the server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from powershell" -l insecure-skip-tls-verify -d 'If true, the server\'s certificate will not be checked for validity. This will make your HTTPS connections insecure'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from powershell" -l disable-compression -d 'If true, opt-out of response compression for all requests to the server'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from powershell" -s h -l help -d 'Print help'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from install" -l dir -d 'Directory for the link. Defaults to the directory of kubectl-lease' -r -f -a "(__fish_complete_directories)"
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from install" -l kubeconfig -d 'Path to the kubeconfig file to use for CLI requests' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from install" -l context -d 'The name of the kubeconfig context to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from install" -l cluster -d 'The name of the kubeconfig cluster to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from install" -l user -d 'The name of the kubeconfig user to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from install" -s n -l namespace -d 'If present, the namespace scope for this CLI request' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from install" -l request-timeout -d 'The length of time to wait before giving up on a single server request, such as 500ms, 30s or 2m. A value of zero means don\'t timeout requests' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from install" -l as -d 'Username to impersonate for the operation. User could be a regular user or a service account in a namespace' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from install" -l as-group -d 'Group to impersonate for the operation, this flag can be repeated to specify multiple groups' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from install" -l as-uid -d 'UID to impersonate for the operation' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from install" -l as-user-extra -d 'User extras to impersonate for the operation, as KEY=VALUE. This flag can be repeated to specify multiple values for the same key' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from install" -s s -l server -d 'The address and port of the Kubernetes API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from install" -l token -d 'Bearer token for authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from install" -l username -d 'Username for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from install" -l password -d 'Password for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from install" -l certificate-authority -d 'Path to a cert file for the certificate authority' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from install" -l client-certificate -d 'Path to a client certificate file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from install" -l client-key -d 'Path to a client key file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from install" -l tls-server-name -d 'Server name to use for server certificate validation. If it is not provided, the hostname used to contact the server is used' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from install" -l proxy-url -d 'URL of the proxy to use for requests to the server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from install" -l insecure-skip-tls-verify -d 'If true, the server\'s certificate will not be checked for validity. This will make your HTTPS connections insecure'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from install" -l disable-compression -d 'If true, opt-out of response compression for all requests to the server'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand completion; and __fish_seen_subcommand_from install" -s h -l help -d 'Print help'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand options" -l kubeconfig -d 'Path to the kubeconfig file to use for CLI requests' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand options" -l context -d 'The name of the kubeconfig context to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand options" -l cluster -d 'The name of the kubeconfig cluster to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand options" -l user -d 'The name of the kubeconfig user to use' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand options" -s n -l namespace -d 'If present, the namespace scope for this CLI request' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand options" -l request-timeout -d 'The length of time to wait before giving up on a single server request, such as 500ms, 30s or 2m. A value of zero means don\'t timeout requests' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand options" -l as -d 'Username to impersonate for the operation. User could be a regular user or a service account in a namespace' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand options" -l as-group -d 'Group to impersonate for the operation, this flag can be repeated to specify multiple groups' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand options" -l as-uid -d 'UID to impersonate for the operation' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand options" -l as-user-extra -d 'User extras to impersonate for the operation, as KEY=VALUE. This flag can be repeated to specify multiple values for the same key' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand options" -s s -l server -d 'The address and port of the Kubernetes API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand options" -l token -d 'Bearer token for authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand options" -l username -d 'Username for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand options" -l password -d 'Password for basic authentication to the API server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand options" -l certificate-authority -d 'Path to a cert file for the certificate authority' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand options" -l client-certificate -d 'Path to a client certificate file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand options" -l client-key -d 'Path to a client key file for TLS' -r -F
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand options" -l tls-server-name -d 'Server name to use for server certificate validation. If it is not provided, the hostname used to contact the server is used' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand options" -l proxy-url -d 'URL of the proxy to use for requests to the server' -r
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand options" -l insecure-skip-tls-verify -d 'If true, the server\'s certificate will not be checked for validity. This will make your HTTPS connections insecure'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand options" -l disable-compression -d 'If true, opt-out of response compression for all requests to the server'
complete -c kubectl-lease -n "__fish_kubectl_lease_using_subcommand options" -s h -l help -d 'Print help'
