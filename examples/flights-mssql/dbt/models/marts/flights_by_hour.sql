{{ config(materialized='incremental', incremental_strategy='merge', unique_key=['origin', 'scheduled_hour']) }}

select
    origin,
    scheduled_hour,
    count(*) as flights,
    sum(case when cancelled = 1 then 1 else 0 end) as cancelled_flights,
    cast(avg(cast(dep_delay as decimal(19, 9))) as decimal(8, 2)) as mean_departure_delay
from {{ ref('stg_flights') }}
{% if is_incremental() %}
-- Delays are reported late: the last week is counted anew.
where scheduled_hour >= (select dateadd(day, -7, max(scheduled_hour)) from {{ this }})
{% endif %}
group by origin, scheduled_hour
