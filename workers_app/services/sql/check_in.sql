-- check_in: write a worker's latest pop: the declaration, and outside of the check-in window everything else too, unless
-- another pop of the worker did since the one this was judged by: its time online is counted, and rewarded, once.
-- Raw so that both are one statement. Served by the primary key.
UPDATE workers
   SET accepts_chat_jobs = %(accepts_chat_jobs)s,
       accepts_prompt_jobs = %(accepts_prompt_jobs)s,
       chat_features = %(chat_features)s::text[],
       chat_max_context_length = %(chat_max_context_length)s,
       chat_max_length = %(chat_max_length)s,
       chat_tools_max_temperature = %(chat_tools_max_temperature)s,
       chat_model_id = %(chat_model_id)s,
       image_transports = %(image_transports)s::text[],
       bridge_agent = CASE WHEN %(is_inside_window)s THEN bridge_agent ELSE %(bridge_agent)s END,
       models = CASE WHEN %(is_inside_window)s THEN models ELSE %(models)s::varchar[] END,
       threads = CASE WHEN %(is_inside_window)s THEN threads ELSE %(threads)s END,
       max_length = CASE WHEN %(is_inside_window)s THEN max_length ELSE %(max_length)s END,
       max_context_length = CASE WHEN %(is_inside_window)s THEN max_context_length ELSE %(max_context_length)s END,
       nsfw = CASE WHEN %(is_inside_window)s THEN nsfw ELSE %(nsfw)s END,
       ipaddr = CASE WHEN %(is_inside_window)s THEN ipaddr ELSE %(address)s::inet END,
       last_check_in = CASE WHEN %(is_inside_window)s THEN last_check_in ELSE %(now)s END,
       uptime_seconds = CASE WHEN %(is_inside_window)s THEN uptime_seconds ELSE %(uptime_seconds)s END,
       rewarded_uptime_seconds = CASE
           WHEN %(is_inside_window)s THEN rewarded_uptime_seconds
           ELSE %(rewarded_uptime_seconds)s
       END
 WHERE id = %(worker_id)s
   AND (%(is_inside_window)s OR last_check_in = %(last_check_in)s)
