//! `millrace function`

use control::api::{Changed, Function, FunctionAdd};
use control::client::Client;

use super::told;
use crate::args;
use crate::failure::Failure;
use crate::output;

const PATH: &str = "/v1/functions";

pub(crate) async fn run(
    client: &Client,
    json: bool,
    change: args::Function,
) -> Result<(), Failure> {
    match change {
        args::Function::Add { file, argument, core, port } => {
            let asked = FunctionAdd { file, argument, core, port };
            let function: Function = client.post(PATH, &asked).await?;
            if json {
                return output::json(&function);
            }
            output::line(format!("function {} added", function.id))
        }
        args::Function::Del { id } => {
            let changed: Changed = client.delete(&format!("{PATH}/{id}"), &()).await?;
            told(json, changed, "functions")
        }
    }
}
