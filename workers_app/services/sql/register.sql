-- register: make the row of a worker that pops for the first time; no row comes back when another pop took the name first.
-- Raw for ON CONFLICT with a verdict. Served by the unique key on the name.
INSERT INTO workers (
    id, user_id, name, bridge_agent, models, threads, max_length, max_context_length, nsfw, ipaddr, created, last_check_in,
    accepts_chat_jobs, accepts_prompt_jobs, chat_features, chat_max_context_length, chat_max_length,
    chat_tools_max_temperature, chat_model_id, image_transports
)
VALUES (
    %(worker_id)s, %(user_id)s, %(name)s, %(bridge_agent)s, %(models)s::varchar[], %(threads)s, %(max_length)s,
    %(max_context_length)s, %(nsfw)s, %(address)s::inet, %(now)s, %(now)s,
    %(accepts_chat_jobs)s, %(accepts_prompt_jobs)s, %(chat_features)s::text[], %(chat_max_context_length)s,
    %(chat_max_length)s, %(chat_tools_max_temperature)s, %(chat_model_id)s, %(image_transports)s::text[]
)
    ON CONFLICT (name) DO NOTHING
