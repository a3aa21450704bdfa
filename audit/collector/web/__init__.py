"""The dashboard shows verdicts as pages, as JSON and as CSV. The dashboard only reads the ledger.

    /                 the first page; ?by=minute|hour|day ?until=
    /buckets          a list of buckets, or one bucket; ?topic= ?until= ?bucket=
    /topics /hosts /loads /mirrors /rejects     a page each; /hosts?q= shows only hosts with this
                                                text in their names
    /search           what contains the text ?q=
    /<page>.json      the content of a page as JSON; for the first page, it is /index.json
    /<page>.csv       one table of a page as CSV: ?table=NAME, by default the first table
    /history.json     the history of verdicts, see `history_answers`
    /complete.json, /hours.json    for programs that wait for whole hours, see `hours`

The address of a page determines what the page shows, so people can share addresses. Times in the
addresses of pages are ms since 1970.

    query        reads the parameters of an address
    rendering    the templates, the style sheet and the script
    answers      renders view models as HTML, JSON and CSV, and sets the headers
    dashboard    the routes; collects the facts for each request

The pages need no script. If the browser runs scripts, /live.js fetches the page again every few
seconds and replaces its content; without scripts, the page reloads itself. The content security
policy allows only our own style sheet and script. The templates escape all text that they insert,
such as host names and lines of logs, also for readers on a terminal.
"""
