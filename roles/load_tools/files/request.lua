-- For wrk2: the method and body of each request, from LAB_METHOD and LAB_BODY.
wrk.method = os.getenv("LAB_METHOD")
wrk.body = os.getenv("LAB_BODY")
